"""What becomes of others' changes in a folder, and the journal that says so."""

from dataclasses import replace

import pytest

from contextbase.ids import ContentHash, ProjectId, Seq, TreePath, new_uuid
from contextbase.merge import Strategy
from contextbase.storage.model import Kind
from contextbase.workspaces.commit_plan import CommittedPath, PendingChange
from contextbase.workspaces.model import (
    FolderContent,
    FolderMove,
    Reported,
    ScanProblem,
    SnapshotKey,
    View,
    WorkspaceChanges,
)
from contextbase.workspaces.refresh.journal import RefreshJournal, RefreshStep
from contextbase.workspaces.refresh.plan import (
    KeptReason,
    OthersChange,
    PathPlan,
    RefreshAction,
    emptied_folders,
    in_order,
    plan,
)

PATH = TreePath("docs/a.md")
VIEW = View(snapshot=SnapshotKey(project_id=ProjectId(new_uuid()), epoch=new_uuid(), seq=Seq(1)))
FOLDER = FolderContent(kind=Kind.DIRECTORY)


def file(text: str, *, size: int = 1) -> FolderContent:
    return FolderContent(kind=Kind.FILE, hash=ContentHash.of(text.encode()), size=size)


def link(text: str) -> FolderContent:
    return FolderContent(kind=Kind.SYMLINK, hash=ContentHash.of(text.encode()), size=1)


GIVEN, THEIRS, MINE = file("given"), file("theirs"), file("mine")


def found(*, reported: tuple[str, ...] = (), moved: tuple[tuple[str, str], ...] = ()) -> WorkspaceChanges:
    return WorkspaceChanges(
        view=VIEW,
        changes=(),
        reported=tuple(Reported(name=name.encode(), problem=ScanProblem.BUSY, reason="") for name in reported),
        ignored=(),
        moved=tuple(FolderMove(source=TreePath(old), target=TreePath(new)) for old, new in moved),
    )


def others(head: FolderContent | None, *, given: FolderContent | None = GIVEN, path: str = PATH) -> OthersChange:
    return OthersChange(path=TreePath(path), base=Seq(1), given=given, shown=given, head=head)


def own(content: FolderContent | None, *, renamed_from: str | None = None, path: str = PATH) -> PendingChange:
    source = None if renamed_from is None else TreePath(renamed_from)
    return PendingChange(path=TreePath(path), base=Seq(1), before=GIVEN, content=content, renamed_from=source)


def planned(change: OthersChange, *pending: PendingChange, look: WorkspaceChanges | None = None) -> PathPlan:
    [one] = plan([change], pending, look or found(), lambda _: Strategy.AUTO)
    return one


@pytest.mark.parametrize("head", [THEIRS, None, link("x"), FOLDER])
def test_what_the_agent_left_alone_arrives(head: FolderContent | None) -> None:
    one = planned(others(head))
    assert (one.action, one.mine, one.reason) == (RefreshAction.PLACE, GIVEN, None)
    new = planned(others(THEIRS, given=None))
    assert (new.action, new.mine) == (RefreshAction.PLACE, None)


@pytest.mark.parametrize(
    ("head", "mine", "reason"),
    [
        (None, MINE, KeptReason.DELETED_BY_OTHERS),
        (THEIRS, None, KeptReason.DELETED_BY_YOU),
        (link("x"), MINE, KeptReason.CONFLICT),
        (THEIRS, link("x"), KeptReason.CONFLICT),
        (THEIRS, FOLDER, KeptReason.CONFLICT),
        (THEIRS, file("mine", size=(16 << 20) + 1), KeptReason.TOO_LARGE),
    ],
)
def test_what_both_changed_in_a_way_that_cannot_be_merged_is_kept(
    head: FolderContent | None, mine: FolderContent | None, reason: KeptReason
) -> None:
    one = planned(others(head), own(mine))
    assert (one.action, one.mine, one.reason) == (RefreshAction.KEEP, mine, reason)


def test_files_that_both_changed_are_merged_if_their_strategy_does_that_by_itself() -> None:
    def action(strategy: Strategy) -> RefreshAction:
        [one] = plan([others(THEIRS)], [own(MINE)], found(), lambda _: strategy)
        return one.action

    by_itself = {Strategy.AUTO, Strategy.CRDT, Strategy.UNION}
    assert {strategy for strategy in Strategy if action(strategy) is RefreshAction.MERGE} == by_itself
    assert planned(others(THEIRS, given=None), own(MINE)).action is RefreshAction.MERGE


@pytest.mark.parametrize("same", [THEIRS, None])
def test_what_both_made_of_it_needs_nothing(same: FolderContent | None) -> None:
    assert planned(others(same), own(same)).action is RefreshAction.AGREE
    assert planned(others(GIVEN)).action is RefreshAction.AGREE  # another node, of the same content


def test_what_the_agent_renamed_waits_at_both_its_names_and_so_does_what_came_into_a_renamed_folder() -> None:
    rename = own(GIVEN, path="moved.md", renamed_from=PATH)
    assert planned(others(THEIRS), rename).reason is KeptReason.RENAMED_BY_YOU
    assert planned(others(THEIRS, given=None, path="moved.md"), rename).reason is KeptReason.RENAMED_BY_YOU
    look = found(moved=(("docs", "manual"),))
    moved = replace(own(GIVEN, path="manual/b.md", renamed_from="docs/b.md"), origin=TreePath("docs/b.md"))
    assert planned(others(THEIRS, given=None), moved, look=look).reason is KeptReason.RENAMED_BY_YOU
    assert planned(others(THEIRS, given=None, path="docs2/a.md"), moved, look=look).action is RefreshAction.PLACE
    assert planned(others(THEIRS, given=None), look=look).action is RefreshAction.PLACE  # the rename was committed


@pytest.mark.parametrize("name", ["docs/a.md", "docs", ""])
def test_what_could_not_be_looked_at_is_kept_and_so_is_what_lies_below(name: str) -> None:
    assert planned(others(THEIRS), look=found(reported=(name,))).reason is KeptReason.REPORTED
    assert planned(others(THEIRS), look=found(reported=("docs/other",))).action is RefreshAction.PLACE


def test_what_goes_goes_before_what_comes_and_from_below() -> None:
    paths = {"a": THEIRS, "a/b": None, "a/b/c": None, "d/e": THEIRS}
    plans = [planned(others(head, path=path)) for path, head in paths.items()]
    assert [one.change.path for one in in_order(plans)] == ["a/b/c", "a/b", "a", "d/e"]


def test_folders_go_with_the_last_file_unless_something_arrives_in_them() -> None:
    paths = {"a/b/c": None, "a/d": None, "e/f": None, "e/g": THEIRS, "h": None}
    plans = [planned(others(head, path=path)) for path, head in paths.items()]
    assert emptied_folders(plans) == {"a", "a/b"}


def test_a_journal_is_read_as_it_was_written() -> None:
    steps = (
        RefreshStep(number=0, path=PATH, expected=GIVEN, content=THEIRS, head=THEIRS, origin=TreePath("was")),
        RefreshStep(number=1, path=TreePath("m"), expected=MINE, content=file("merged"), head=THEIRS),
        RefreshStep(number=4, path=TreePath("gone"), expected=link("x"), content=None, head=None, origin=PATH),
        RefreshStep(number=5, path=TreePath("folder"), expected=None, content=FOLDER, head=FOLDER),
    )
    journal = RefreshJournal(id="0f", seq=Seq(7), steps=steps, emptied=(TreePath("a/b"), TreePath("a")))
    assert RefreshJournal.from_json(journal.to_json()) == journal
    assert [step.is_merge for step in steps] == [False, True, False, False]
    assert journal.held({0, 1, 4}) == {
        PATH: CommittedPath(base=Seq(7), content=THEIRS, origin=TreePath("was")),
        TreePath("m"): CommittedPath(base=Seq(7), content=THEIRS),
        TreePath("gone"): CommittedPath(base=Seq(7), content=None),
    }
