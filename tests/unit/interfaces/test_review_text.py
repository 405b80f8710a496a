"""How a review item looks in a terminal."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.review_text import drawn, has_markers
from contextbase.wire.commit import ConflictPlace, ConflictSide, ConflictView
from contextbase.wire.review import CommentView, ReviewDetail

DRAFT = "a\n<<<<<<< ours\nmine\n||||||| base\nold\n=======\nyours\n>>>>>>> theirs\n=======\nz\n"


def item(**fields: object) -> ReviewDetail:
    conflict = ConflictView(
        place=ConflictPlace(kind="lines", at="2-2"), reason="both-changed", base=None, ours=None, theirs=None,
        suggestion=None,
    )  # fmt: skip
    given = {
        "id": UUID(int=0xABCD), "path": "a.txt", "renamed_from": None, "state": "open", "reason": "content",
        "author": "agent:bob", "kind": "file", "seq": 3, "side_version_id": UUID(int=1), "places": [], "comments": 0,
        "claim": None, "closed": None, "created_at": datetime.now(UTC), "message": "", "ours_seq": 7, "base": None,
        "ours": None, "theirs": None, "draft": ConflictSide(text=DRAFT), "conflicts": [conflict], "by_conflict": True,
        "suggestion": None, "discussion": [], "epoch": UUID(int=2),
    }  # fmt: skip
    return ReviewDetail.model_validate(given | fields)


def test_each_side_of_a_conflict_has_its_colour() -> None:
    text = drawn(item())
    styles = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert (styles["mine\n"], styles["old\n"], styles["yours\n"]) == ("green", "dim", "yellow")
    assert [styles[line] for line in ("<<<<<<< ours\n", ">>>>>>> theirs\n")] == ["bold magenta"] * 2
    assert "z\n" not in styles  # a line of its own, though it follows one that looks like a marker


def test_it_ends_with_the_command_that_decides_it() -> None:
    advice = "contextbase review resolve 0000abcd --at 7 [--ours | --theirs | --edit | --pick 1=ours]"
    assert drawn(item()).plain.endswith(advice)
    assert "resolve" not in drawn(item(state="rejected")).plain


@pytest.mark.parametrize(("text", "left"), [(DRAFT, True), ("Title\n=======\n", False), ("a <<<<<<< b\n", False)])
def test_markers_that_are_left_are_found(text: str, left: bool) -> None:
    assert has_markers(text) is left


def test_an_id_is_shortened_to_how_it_ends() -> None:
    assert short_id(UUID(int=0x12345678)) == "12345678"


def test_what_others_wrote_commands_nothing_of_the_terminal() -> None:
    said = CommentView(number=1, author="agent:bob", at=datetime.now(UTC), text="fine \x1b[2J")
    draft = "a\r\n\x1b[8m<<<\x1b[0m rm -rf\r\n"
    text = drawn(item(message="\x1b]0;title\x07", draft=ConflictSide(text=draft), discussion=[said])).plain
    assert "\x1b" not in text
    assert "\\x1b[8m<<<\\x1b[0m rm -rf\n" in text
    assert "a\n" in text  # the ends of lines are none of it
