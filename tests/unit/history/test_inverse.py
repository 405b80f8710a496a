"""Taking back what one did while others go on."""

from contextbase.history.inverse import State, VersionRange, take_back
from contextbase.ids import ContentHash, NodeId, Seq, TreePath, new_uuid
from contextbase.merge import merge
from contextbase.storage.model import Kind, Version

NODE = NodeId(new_uuid())
STORE: dict[ContentHash, bytes] = {}


def version(number: int, content: bytes | None, *, path: str = "a.txt", executable: bool = False) -> Version:
    """Its seq is ten times its number; no content: it was deleted."""
    name = None
    if content is not None:
        name = ContentHash.of(content)
        STORE[name] = content
    return Version(
        node_id=NODE,
        number=number,
        seq=Seq(number * 10),
        path=TreePath(path),
        kind=Kind.DELETED if content is None else Kind.FILE,
        content_hash=name,
        size=len(content or b""),
        executable=executable,
        mime="",
    )


def left_of(head: Version, *stretches: VersionRange) -> tuple[bytes | None, list[VersionRange]]:
    inverse = take_back(head, stretches, STORE.__getitem__, merge)
    if inverse.result is None:
        return None, inverse.stuck
    assert inverse.result.content is not None
    return {**STORE, **inverse.contents}[inverse.result.content], inverse.stuck


def test_what_nobody_touched_since_goes_back_to_what_it_was() -> None:
    one, two = version(1, b"1\n"), version(2, b"2\n")
    assert left_of(two, VersionRange(before=one, after=two)) == (b"1\n", [])


def test_a_file_they_made_goes_away() -> None:
    one = version(1, b"1\n")
    assert left_of(one, VersionRange(before=None, after=one)) == (None, [])


def test_a_file_they_made_and_others_changed_is_for_a_person() -> None:
    one, two = version(1, b"1\n"), version(2, b"1\n2\n")
    stretch = VersionRange(before=None, after=one)
    assert left_of(two, stretch) == (b"1\n2\n", [stretch])


def test_a_file_they_deleted_comes_back() -> None:
    one, two = version(1, b"1\n"), version(2, None)
    assert left_of(two, VersionRange(before=one, after=two)) == (b"1\n", [])


def test_what_others_deleted_since_stays_deleted() -> None:
    one, two, three = version(1, b"1\n"), version(2, b"2\n"), version(3, None)
    assert left_of(three, VersionRange(before=one, after=two)) == (None, [])


def test_stretches_between_those_of_others_leave_the_others_lines() -> None:
    one = version(1, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    two = version(2, b"one\n2\n3\n4\n5\n6\n7\n8\n9\n")  # theirs
    three = version(3, b"one\n2\n3\n4\nfive\n6\n7\n8\n9\n")  # another's
    four = version(4, b"one\n2\n3\n4\nfive\n6\n7\n8\nnine\n")  # theirs
    left = left_of(four, VersionRange(before=three, after=four), VersionRange(before=one, after=two))
    assert left == (b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n", [])


def test_a_line_that_others_changed_too_is_for_a_person_and_the_rest_is_taken_back() -> None:
    one = version(1, b'{\n  "x": 1,\n  "y": 1\n}\n', path="a.json")
    two = version(2, b'{\n  "x": 2,\n  "y": 2\n}\n', path="a.json")
    three = version(3, b'{\n  "x": 3,\n  "y": 2\n}\n', path="a.json")
    stretch = VersionRange(before=one, after=two)
    assert left_of(three, stretch) == (b'{\n  "x": 3,\n  "y": 1\n}\n', [stretch])


def test_a_rename_is_taken_back_and_an_edit_by_others_kept() -> None:
    one, two = version(1, b"1\n"), version(2, b"1\n", path="b.txt")
    three = version(3, b"1\n2\n", path="b.txt")
    inverse = take_back(three, [VersionRange(before=one, after=two)], STORE.__getitem__, merge)
    assert inverse.result == State(
        path=TreePath("a.txt"), kind=Kind.FILE, content=ContentHash.of(b"1\n2\n"), size=4, executable=False
    )


def test_a_mode_they_changed_is_taken_back() -> None:
    one, two = version(1, b"1\n"), version(2, b"1\n", executable=True)
    three = version(3, b"2\n", executable=True)
    inverse = take_back(three, [VersionRange(before=one, after=two)], STORE.__getitem__, merge)
    assert inverse.result is not None
    assert not inverse.result.executable
    assert inverse.result.content == ContentHash.of(b"2\n")
