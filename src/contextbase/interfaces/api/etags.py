"""The headers If-Match and If-None-Match. A file's ETag is its sha256 in quotes."""

import re
from typing import Final

from contextbase.errors import InvalidInput

__all__ = ["ANY", "etag_of", "etags_in"]

ANY: Final = "*"
_ETAG: Final = re.compile(r'\s*(?:W/)?"([\x21\x23-\x7e]*)"\s*')
_MOST: Final = 100


def etag_of(content_hash: object) -> str:
    return f'"{content_hash}"'


def etags_in(header: str | None) -> frozenset[str] | None:
    """What the header names, without quotes; {ANY} for `*`. None: there is no such header."""
    if header is None:
        return None
    if header.strip() == ANY:
        return frozenset({ANY})
    parts = header.split(",", _MOST)
    found = [_ETAG.fullmatch(part) for part in parts]
    if len(parts) > _MOST or not all(found):
        raise InvalidInput('If-Match and If-None-Match take * or ETags in quotes, for example "6b86b273…".')
    return frozenset(match[1] for match in found if match is not None)
