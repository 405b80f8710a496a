"""Cursors: what is no cursor of this search is refused."""

import base64
import json
from uuid import UUID

import pytest

from contextbase.errors import InvalidInput
from contextbase.ids import Seq
from contextbase.search.cursor import SearchCursor
from contextbase.search.model import ContentQuery, NameQuery
from contextbase.search.pattern import TextPattern

EPOCH = UUID(int=5)
QUERY = ContentQuery(pattern=TextPattern(text="foo"))
CURSOR = SearchCursor(epoch=EPOCH, seq=Seq(7), path="d/日本.txt", after_line=3, shown_line=5, matches=2)


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert SearchCursor.read(CURSOR.written(QUERY), QUERY) == CURSOR


@pytest.mark.parametrize(
    "query",
    [
        ContentQuery(pattern=TextPattern(text="bar")),
        ContentQuery(pattern=TextPattern(text="foo"), context=1),
        NameQuery(),
    ],
)
def test_a_cursor_of_another_search_is_refused(query: ContentQuery | NameQuery) -> None:
    with pytest.raises(InvalidInput):
        SearchCursor.read(CURSOR.written(QUERY), query)


def spelled(*fields: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


DIGEST = json.loads(base64.urlsafe_b64decode(CURSOR.written(QUERY) + "=="))[0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "%%%", "é", spelled(), spelled(DIGEST), spelled(DIGEST, "x", 1, "a", None, 0, 0)),
        *(spelled(DIGEST, EPOCH.hex, seq, "a", None, 0, 0) for seq in (-1, "1", 2**60, None, 1.5, True and [1])),
        spelled(DIGEST, EPOCH.hex, 1, "a\0", None, 0, 0),
        spelled(DIGEST, EPOCH.hex, 1, "\ud800", None, 0, 0),
        spelled(DIGEST, EPOCH.hex, 1, 5, None, 0, 0),
        spelled(DIGEST, EPOCH.hex, 1, "a", -1, 0, 0),
        spelled(DIGEST, 5, 1, "a", 0, 0, 0),
        base64.urlsafe_b64encode(b"[" * 50_000).decode(),
    ],
    ids=lambda text: text[:8],
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        SearchCursor.read(text, QUERY)
