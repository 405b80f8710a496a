"""Changes that bring a node to a wanted state."""

from contextbase.gate.model import ChangeAction, ContentKind, RequestedChange
from contextbase.history.inverse import State
from contextbase.history.restore_plan import RestoreStep, changes_to, in_rounds
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind

HEAD = Seq(9)


def state(path: str, content: bytes | None = b"x", kind: Kind = Kind.FILE) -> State:
    name = None if content is None else ContentHash.of(content)
    return State(path=TreePath(path), kind=kind, content=name, size=len(content or b""), executable=False)


def change_to(now: State | None, wanted: State | None) -> RequestedChange | None:
    changes = changes_to([RestoreStep(now=now, wanted=wanted)], base=HEAD)
    assert len(changes) <= 1
    return changes[0] if changes else None


def test_nothing_is_done_where_nothing_differs() -> None:
    assert change_to(state("a"), state("a")) is None
    assert change_to(None, None) is None


def test_each_difference_has_its_change() -> None:
    def made(now: State | None, wanted: State | None) -> tuple[ChangeAction, str, str | None]:
        change = change_to(now, wanted)
        assert change is not None
        return change.action, change.path, change.target

    assert made(state("a"), None) == (ChangeAction.DELETE, "a", None)
    assert made(None, state("a")) == (ChangeAction.WRITE, "a", None)
    assert made(state("a"), state("a", b"y")) == (ChangeAction.WRITE, "a", None)
    assert made(state("a"), state("b")) == (ChangeAction.RENAME, "a", "b")
    assert made(None, state("a", None, Kind.DIRECTORY)) == (ChangeAction.MAKE_DIRECTORY, "a", None)


def test_a_rename_brings_a_content_along_only_if_it_differs() -> None:
    same, other = change_to(state("a"), state("b")), change_to(state("a"), state("b", b"y"))
    assert same is not None
    assert same.content is None
    assert other is not None
    assert other.content is not None


def test_a_folder_that_moves_is_made_anew_for_a_rename_would_take_along_what_is_in_it() -> None:
    step = RestoreStep(now=state("a", None, Kind.DIRECTORY), wanted=state("b", None, Kind.DIRECTORY))
    changes = changes_to([step], base=HEAD)
    assert [(change.action, change.path) for change in changes] == [
        (ChangeAction.DELETE, "a"),
        (ChangeAction.MAKE_DIRECTORY, "b"),
    ]


def test_a_link_stays_a_link() -> None:
    change = change_to(None, state("a", b"b", Kind.SYMLINK))
    assert change is not None
    assert change.kind is ContentKind.SYMLINK


def test_what_is_about_one_place_is_done_one_after_the_other_and_deletions_first() -> None:
    back = RequestedChange(action=ChangeAction.RENAME, path=TreePath("b"), target=TreePath("a"), base=HEAD)
    gone = RequestedChange(action=ChangeAction.DELETE, path=TreePath("a"), base=HEAD)
    other = RequestedChange(action=ChangeAction.DELETE, path=TreePath("c"), base=HEAD)
    assert in_rounds([back, gone, other]) == [[gone, other], [back]]
