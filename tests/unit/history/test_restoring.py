"""Changes that bring a node to a wanted state."""

from contextbase.gate.model import Change, ChangeAction, ContentKind
from contextbase.history.inverse import State
from contextbase.history.restoring import change_to, in_rounds
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind

HEAD = Seq(9)


def state(path: str, content: bytes | None = b"x", kind: Kind = Kind.FILE) -> State:
    name = None if content is None else ContentHash.of(content)
    return State(path=TreePath(path), kind=kind, content=name, size=len(content or b""), executable=False)


def test_nothing_is_done_where_nothing_differs() -> None:
    assert change_to(state("a"), state("a"), base=HEAD) is None
    assert change_to(None, None, base=HEAD) is None


def test_each_difference_has_its_change() -> None:
    def made(now: State | None, wanted: State | None) -> tuple[ChangeAction, str, str | None]:
        change = change_to(now, wanted, base=HEAD)
        assert change is not None
        return change.action, change.path, change.target

    assert made(state("a"), None) == (ChangeAction.DELETE, "a", None)
    assert made(None, state("a")) == (ChangeAction.WRITE, "a", None)
    assert made(state("a"), state("a", b"y")) == (ChangeAction.WRITE, "a", None)
    assert made(state("a"), state("b")) == (ChangeAction.RENAME, "a", "b")
    assert made(None, state("a", None, Kind.DIRECTORY)) == (ChangeAction.MAKE_DIRECTORY, "a", None)


def test_a_rename_brings_a_content_along_only_if_it_differs() -> None:
    same, other = change_to(state("a"), state("b"), base=HEAD), change_to(state("a"), state("b", b"y"), base=HEAD)
    assert same is not None
    assert same.content is None
    assert other is not None
    assert other.content is not None


def test_a_link_stays_a_link() -> None:
    change = change_to(None, state("a", b"b", Kind.SYMLINK), base=HEAD)
    assert change is not None
    assert change.kind is ContentKind.SYMLINK


def test_what_is_about_one_place_is_done_one_after_the_other_and_deletions_first() -> None:
    back = Change(action=ChangeAction.RENAME, path=TreePath("b"), target=TreePath("a"), base=HEAD)
    gone = Change(action=ChangeAction.DELETE, path=TreePath("a"), base=HEAD)
    other = Change(action=ChangeAction.DELETE, path=TreePath("c"), base=HEAD)
    assert in_rounds([back, gone, other]) == [[gone, other], [back]]
