"""Old output that is shown again asks a terminal nothing."""

import pytest

from contextbase.sessions.terminal_queries import without_queries

_QUERIES = {
    "device": b"\x1b[c",
    "second device": b"\x1b[>0c",
    "state": b"\x1b[5n",
    "cursor": b"\x1b[6n",
    "cursor with page": b"\x1b[?6n",
    "mode": b"\x1b[?2026$p",
    "version": b"\x1b[>q",
    "keys": b"\x1b[?u",
    "window": b"\x1b[18t",
    "title": b"\x1b[21t",
    "old device": b"\x1bZ",
    "answerback": b"\x05",
    "foreground": b"\x1b]10;?\x07",
    "background": b"\x1b]11;?\x1b\\",
    "palette": b"\x1b]4;1;?\x07",
    "clipboard": b"\x1b]52;c;?\x07",
    "setting": b"\x1bP$qm\x1b\\",
    "capability": b"\x1bP+q544e\x1b\\",
}
_SHOWN = {
    "text": "größe: 6n, [c\r\n".encode(),
    "colors": b"\x1b[1;31mred\x1b[0m\x1b[38:2::1:2:3mx",
    "moves": b"\x1b[2J\x1b[10;5H\x1b[K\x1b[?25l\x1b[?1049h",
    "keys": b"\x1b[>1u\x1b[<u\x1b[>4;1m\x1b[>4n",
    "cursor": b"\x1b[2 q\x1b7\x1b8\x1b[s",
    "title": b"\x1b]0;what? now\x07\x1b]2;a;b\x1b\\",
    "color": b"\x1b]11;#000000\x07\x1b]52;c;aGk=\x07",
    "window": b"\x1b[22;0t\x1b[23;0t\x1b[8;24;80t",
    "begun": b"\x1b[6",
}


@pytest.mark.parametrize("query", _QUERIES.values(), ids=_QUERIES)
def test_a_question_is_left_out_and_what_is_around_it_stays(query: bytes) -> None:
    assert without_queries(b"before" + query + b"after").replace(b"\x18", b"") == b"beforeafter"


@pytest.mark.parametrize("shown", _SHOWN.values(), ids=_SHOWN)
def test_what_asks_nothing_stays_as_it_is(shown: bytes) -> None:
    assert without_queries(shown) == shown


def test_what_stood_around_a_question_is_no_question_then() -> None:
    left = without_queries(b"\x1b[\x1b[6n6n")
    assert b"\x1b[6n" not in left
    assert without_queries(left) == left


@pytest.mark.timeout(60)  # it would take longer if it were looked at again from each place
@pytest.mark.parametrize("piece", [b"\x1b]4;?;", b"\x1b[1;", b"\x1bP+q", b";?"])
def test_output_that_is_made_to_be_slow_is_not(piece: bytes) -> None:
    hostile = b"\x1b]4;" + piece * (256 * 1024 // len(piece))
    assert without_queries(hostile) == hostile
