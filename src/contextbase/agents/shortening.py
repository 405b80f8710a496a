"""Values cut to a size that an event may have."""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["shortened", "shortened_values"]

_LONGEST: Final = 16 << 10  # characters of a tool's output, or of one value of its input
_MOST_VALUES: Final = 200
_DEEPEST: Final = 6


def shortened(text: str, longest: int = _LONGEST) -> tuple[str, bool]:
    """Its beginning, and whether something is missing."""
    return (text, False) if len(text) <= longest else (text[:longest], True)


def shortened_values(value: Any, depth: int = 0) -> Any:
    """The same shape with shorter texts and lists."""
    if isinstance(value, str):
        text, is_cut = shortened(value)
        return f"{text}…" if is_cut else text
    if depth >= _DEEPEST and isinstance(value, Mapping | list):
        return "…"
    if isinstance(value, Mapping):
        items = list(value.items())[:_MOST_VALUES]
        return {str(name)[:200]: shortened_values(one, depth + 1) for name, one in items}
    if isinstance(value, list):
        return [shortened_values(one, depth + 1) for one in value[:_MOST_VALUES]]
    return value
