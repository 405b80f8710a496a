"""Whether a file that was put together is still one of its type."""

from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.formats import FORMATS
from contextbase.merge.sniff import decode, file_type

__all__ = ["stays_valid"]

_SECONDS = 2.0


def stays_valid(path: str, content: bytes, *, made_from: tuple[bytes, ...]) -> bool:
    """Whether the content parses as its type, if all that it was made from does."""
    return _is_valid(path, content) or not all(_is_valid(path, side) for side in made_from)


def _is_valid(path: str, content: bytes) -> bool:
    readers = FORMATS.get(file_type(path, content), ())
    try:
        text = decode(content)[0]
        return not readers or any(reader.is_valid(text, Budget(_SECONDS)) for reader in readers)
    except UnicodeDecodeError:
        return not readers
    except (BudgetSpent, RecursionError):
        return True  # nobody can tell, here as in a merge
