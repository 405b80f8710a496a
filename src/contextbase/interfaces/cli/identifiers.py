"""Short forms of ids: what is shown, and how it finds the thing again."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final
from uuid import UUID

from contextbase.errors import InvalidInput, NotFound

__all__ = ["find_id", "short_id"]

_FEWEST_CHARACTERS: Final = 6
_MOST_SEARCHED: Final = 20_000
_MOST_CANDIDATES: Final = 10


def short_id(full: UUID) -> str:
    """Enough of an id to name it. The end, because ids that are made at about the same time begin alike."""
    return str(full)[-8:]


def find_id(text: str, *, what: str, listed: Iterable[tuple[UUID, str]], see: str) -> UUID:
    """The id that a person means: a whole one, or the start or end of one of those `listed` (newest first, each with
    a description). Raises `InvalidInput` with the candidates if several match, and `NotFound` if none does.

    `what`: the noun; `see`: the command that lists the ids."""
    try:
        return UUID(text)
    except ValueError:
        pass
    wanted = text.lower().replace("-", "")
    if not re.fullmatch(r"[0-9a-f]*", wanted) or len(wanted) < _FEWEST_CHARACTERS:
        raise InvalidInput(
            f"{text[:80]!r} is not the id of a {what}: give the id, or at least {_FEWEST_CHARACTERS} characters of its "
            f"start or end. `{see}` lists them."
        )
    found = {
        full: about
        for full, about in islice(listed, _MOST_SEARCHED)
        if full.hex.startswith(wanted) or full.hex.endswith(wanted)
    }
    if not found:
        raise NotFound(f"There is no {what} whose id starts or ends with {text[:80]!r}. `{see}` lists them.")
    if len(found) > 1:
        raise _ambiguous(text, what, found)
    return next(iter(found))


def _ambiguous(text: str, what: str, found: dict[UUID, str]) -> InvalidInput:
    shown = "".join(f"\n  {full}  {about}".rstrip() for full, about in islice(found.items(), _MOST_CANDIDATES))
    rest = f"\n  … and {len(found) - _MOST_CANDIDATES} more" if len(found) > _MOST_CANDIDATES else ""
    return InvalidInput(
        f"{text[:80]!r} is the start or end of {len(found)} ids of a {what}; give more of it:{shown}{rest}",
        candidates=[str(full) for full in found],
    )
