"""Where a search goes on: after the last file, or the last line of one, that was looked into.

A cursor names a snapshot, so that pages fit together whatever is committed between them; and only what the caller was
shown or may see. It is no secret and not signed: with one that is made up, somebody skips some of their own results.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from contextbase.errors import InvalidInput
from contextbase.ids import Seq
from contextbase.search.model import ContentQuery, NameQuery

__all__ = ["LONGEST_CURSOR", "SearchCursor"]

LONGEST_CURSOR: Final = 4096
_MOST: Final = 2**53


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchCursor:
    epoch: UUID
    seq: Seq
    path: str = ""
    after_line: int | None = None  # of the file at the path; None: all of it was searched
    shown_line: int = 0
    matches: int = 0  # in that file, so far

    def written(self, query: ContentQuery | NameQuery) -> str:
        fields = [
            _digest(query), self.epoch.hex, self.seq, self.path, self.after_line, self.shown_line, self.matches,
        ]  # fmt: skip
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, query: ContentQuery | NameQuery) -> "SearchCursor":
        """Raises `InvalidInput` for what is no cursor of this very search."""
        try:
            padded = text + "=" * (-len(text) % 4)
            fields = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            digest, epoch, seq, path, after_line, shown_line, matches = fields
            numbers = (seq, shown_line, matches, after_line or 0)
            is_sound = digest == _digest(query) and isinstance(path, str) and "\x00" not in path
            if is_sound and all(isinstance(number, int) and 0 <= number < _MOST for number in numbers):
                path.encode()
                return cls(
                    epoch=UUID(hex=epoch),
                    seq=Seq(seq),
                    path=path,
                    after_line=after_line,
                    shown_line=shown_line,
                    matches=matches,
                )
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise InvalidInput("The cursor belongs to another search; begin again without it.")


def _digest(query: ContentQuery | NameQuery) -> str:
    return hashlib.sha256(repr(query).encode()).hexdigest()[:16]
