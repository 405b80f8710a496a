"""The table of merge/tree.py, row by row."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from contextbase.ids import ContentHash, TreePath
from contextbase.merge import (
    EntryKind,
    MergePolicy,
    PathMergeRule,
    Settled,
    Strategy,
    TooLargeToMerge,
    TreeChange,
    TreeConflict,
    TreeEntry,
    Verdict,
    settle,
)

A, B, C = TreePath("a.txt"), TreePath("b.txt"), TreePath("c.txt")
CONTENTS: dict[ContentHash, bytes] = {}


def file(content: bytes, *, executable: bool = False) -> TreeEntry:
    CONTENTS[ContentHash.of(content)] = content
    return TreeEntry(content=ContentHash.of(content), executable=executable)


def link(target: bytes) -> TreeEntry:
    return TreeEntry(kind=EntryKind.SYMLINK, content=ContentHash.of(target))


BASE, OURS, THEIRS = (file(text) for text in (b"1\n2\n3\n", b"one\n2\n3\n", b"1\n2\nthree\n"))
BOTH = file(b"one\n2\nthree\n")
OTHER = file(b"uno\n2\n3\n")
FOLDER = TreeEntry(kind=EntryKind.DIRECTORY)


class Tree:
    def __init__(
        self, entries: Mapping[TreePath, TreeEntry], renames: Mapping[TreePath, TreePath] | None = None
    ) -> None:
        self.entries = entries
        self.renames = renames or {}

    def entry(self, path: TreePath) -> TreeEntry | None:
        return self.entries.get(path)

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        return [path for path in self.entries if path.is_below(folder)]

    def renamed_to(self, path: TreePath) -> TreePath | None:
        return self.renames.get(path)

    def rank(self, path: TreePath) -> int:
        return 1 if path in self.entries else 0


def settled(change: TreeChange, tree: Tree, policy: MergePolicy | None = None) -> Settled:
    (answer,) = settle([change], tree, CONTENTS.__getitem__, policy=policy)
    return answer


def verdict(change: TreeChange, tree: Tree) -> tuple[Verdict, TreePath, TreeEntry | None, TreeConflict | None]:
    answer = settled(change, tree)
    return answer.verdict, answer.path, answer.entry, answer.conflict


def test_a_write_to_what_the_writer_saw_is_written() -> None:
    assert verdict(TreeChange(path=A, entry=THEIRS, base=BASE), Tree({A: BASE})) == (Verdict.WRITTEN, A, THEIRS, None)


def test_writes_of_both_are_merged_or_a_conflict_with_its_places() -> None:
    change = TreeChange(path=A, entry=THEIRS, base=BASE)
    assert verdict(change, Tree({A: OURS})) == (Verdict.MERGED, A, BOTH, None)
    answer = settled(TreeChange(path=A, entry=OTHER, base=BASE), Tree({A: OURS}))
    assert (answer.verdict, answer.conflict) == (Verdict.CONFLICT, TreeConflict.CONTENT)
    assert answer.merged is not None
    assert answer.merged.conflicts[0].theirs == b"uno\n"


def test_a_second_change_can_meet_what_a_merge_of_the_first_has_made() -> None:
    """Others renamed a to b. One writer changes a, which is at b by then, and makes a b of its own."""
    changes = [TreeChange(path=A, entry=THEIRS, base=BASE), TreeChange(path=B, entry=OTHER, base=None)]
    known = {side.content: CONTENTS[side.content] for side in (BASE, OURS, THEIRS, OTHER) if side.content is not None}
    first, second = settle(changes, Tree({B: OURS}, {A: B}), known.__getitem__)
    assert (first.verdict, first.path, first.entry) == (Verdict.MERGED, B, BOTH)
    assert (second.verdict, second.conflict) == (Verdict.CONFLICT, TreeConflict.CONTENT)


def test_a_write_equal_to_the_head_changes_nothing() -> None:
    assert verdict(TreeChange(path=A, entry=OURS, base=BASE), Tree({A: OURS})) == (Verdict.UNCHANGED, A, OURS, None)


def test_delete_against_change_is_a_conflict_either_way() -> None:
    conflict = TreeConflict.DELETED_AND_CHANGED
    assert verdict(TreeChange(path=A, entry=None, base=BASE), Tree({A: OURS}))[::3] == (Verdict.CONFLICT, conflict)
    assert verdict(TreeChange(path=A, entry=THEIRS, base=BASE), Tree({}))[::3] == (Verdict.CONFLICT, conflict)


def test_a_delete_of_what_the_writer_saw_deletes_and_a_second_one_changes_nothing() -> None:
    change = TreeChange(path=A, entry=None, base=BASE)
    assert verdict(change, Tree({A: BASE})) == (Verdict.DELETED, A, None, None)
    assert verdict(change, Tree({})) == (Verdict.UNCHANGED, A, None, None)


def test_two_files_added_at_one_path_are_one_if_equal_and_else_merged_without_a_base() -> None:
    added = TreeChange(path=A, entry=THEIRS, base=None)
    assert verdict(added, Tree({A: THEIRS}))[0] is Verdict.UNCHANGED
    assert verdict(added, Tree({A: OURS}))[::3] == (Verdict.CONFLICT, TreeConflict.CONTENT)
    path = TreePath("a.json")
    change = TreeChange(path=path, entry=file(b'{"b": 2}'), base=None)
    answer = settled(change, Tree({path: file(b'{"a": 1}')}))
    assert (answer.verdict, answer.new_content) == (Verdict.MERGED, b'{"a": 1,"b": 2}')
    assert answer.entry == file(b'{"a": 1,"b": 2}')


def test_a_rename_takes_along_what_the_head_wrote_meanwhile() -> None:
    answer = settled(TreeChange(path=B, entry=THEIRS, base=BASE, renamed_from=A), Tree({A: OURS}))
    assert (answer.verdict, answer.path, answer.entry, answer.removed) == (Verdict.MERGED, B, BOTH, A)
    plain = settled(TreeChange(path=B, entry=BASE, base=BASE, renamed_from=A), Tree({A: OURS}))
    assert (plain.verdict, plain.entry, plain.removed) == (Verdict.WRITTEN, OURS, A)


def test_a_write_follows_a_rename_in_the_head() -> None:
    answer = settled(TreeChange(path=A, entry=THEIRS, base=BASE), Tree({B: OURS}, {A: B}))
    assert (answer.verdict, answer.path, answer.entry, answer.removed) == (Verdict.MERGED, B, BOTH, None)


def test_renames_to_one_place_agree_and_to_two_places_are_a_conflict() -> None:
    tree = Tree({B: OURS}, {A: B})
    same = settled(TreeChange(path=B, entry=THEIRS, base=BASE, renamed_from=A), tree)
    assert (same.verdict, same.path, same.entry, same.removed) == (Verdict.MERGED, B, BOTH, None)
    other = settled(TreeChange(path=C, entry=THEIRS, base=BASE, renamed_from=A), tree)
    assert (other.verdict, other.conflict) == (Verdict.CONFLICT, TreeConflict.RENAMED_TWICE)


def test_a_rename_of_what_was_deleted_or_onto_what_is_there_is_a_conflict() -> None:
    change = TreeChange(path=B, entry=BASE, base=BASE, renamed_from=A)
    assert verdict(change, Tree({}))[3] is TreeConflict.DELETED_AND_CHANGED
    assert verdict(change, Tree({A: BASE, B: OTHER}))[3] is TreeConflict.CONTENT


@pytest.mark.parametrize("swapped", [False, True])
def test_a_file_takes_the_place_of_a_folder_whose_files_the_same_change_set_moves(swapped: bool) -> None:
    folder, inside, other = TreePath("d"), TreePath("d/a"), TreePath("d/b")
    changes = [
        TreeChange(path=folder, entry=BASE, base=BASE, renamed_from=inside),
        TreeChange(path=B, entry=OURS, base=OURS, renamed_from=other),
    ]
    answers = settle(changes[::-1] if swapped else changes, Tree({inside: BASE, other: OURS}), CONTENTS.__getitem__)
    assert {(answer.verdict, answer.removed) for answer in answers} == {
        (Verdict.WRITTEN, inside),
        (Verdict.WRITTEN, other),
    }


@pytest.mark.parametrize("swapped", [False, True])
def test_a_file_stands_below_the_old_place_of_one_that_the_same_change_set_moves(swapped: bool) -> None:
    changes = [
        TreeChange(path=TreePath("a.txt/x"), entry=OURS, base=None),
        TreeChange(path=B, entry=BASE, base=BASE, renamed_from=A),
    ]
    answers = settle(changes[::-1] if swapped else changes, Tree({A: BASE}), CONTENTS.__getitem__)
    assert [answer.verdict for answer in answers] == [Verdict.WRITTEN] * 2


def test_no_file_takes_the_place_of_a_folder_from_which_another_cannot_be_moved() -> None:
    inside, other = TreePath("d/a"), TreePath("d/b")
    answers = settle(
        [
            TreeChange(path=TreePath("d"), entry=BASE, base=BASE, renamed_from=inside),
            TreeChange(path=B, entry=BASE, base=BASE, renamed_from=other),
        ],
        Tree({inside: BASE, other: BASE, B: OURS}),
        CONTENTS.__getitem__,
    )
    assert [answer.conflict for answer in answers] == [TreeConflict.FILE_AND_FOLDER, TreeConflict.CONTENT]


def test_a_delete_of_what_the_head_renamed_is_a_conflict() -> None:
    assert verdict(TreeChange(path=A, entry=None, base=BASE), Tree({B: BASE}, {A: B}))[::3] == (
        Verdict.CONFLICT,
        TreeConflict.DELETED_AND_CHANGED,
    )


def test_a_file_and_a_folder_cannot_share_a_path_unless_the_change_set_makes_room() -> None:
    folder, inside = TreePath("x"), TreePath("x/y")
    onto_folder = TreeChange(path=folder, entry=BASE, base=None)
    assert verdict(onto_folder, Tree({inside: BASE}))[3] is TreeConflict.FILE_AND_FOLDER
    into_file = TreeChange(path=inside, entry=BASE, base=None)
    assert verdict(into_file, Tree({folder: BASE}))[3] is TreeConflict.FILE_AND_FOLDER
    answers = settle(
        [onto_folder, TreeChange(path=inside, entry=None, base=BASE)], Tree({inside: BASE}), CONTENTS.__getitem__
    )
    assert [answer.verdict for answer in answers] == [Verdict.WRITTEN, Verdict.DELETED]


def test_a_folder_someone_put_a_file_into_is_not_deleted() -> None:
    folder, inside, new = TreePath("x"), TreePath("x/y"), TreePath("x/new")
    changes = [TreeChange(path=folder, entry=None, base=FOLDER), TreeChange(path=inside, entry=None, base=BASE)]
    kept = settle(changes, Tree({folder: FOLDER, inside: BASE, new: BASE}), CONTENTS.__getitem__)
    assert [answer.conflict for answer in kept] == [TreeConflict.FOLDER_NOT_EMPTY, None]
    gone = settle(changes, Tree({folder: FOLDER, inside: BASE}), CONTENTS.__getitem__)
    assert [answer.verdict for answer in gone] == [Verdict.DELETED, Verdict.DELETED]


@pytest.mark.parametrize(("head", "mine", "expected"), [(False, True, True), (True, False, True), (True, True, True)])
def test_the_side_that_changed_the_mode_decides_it(head: bool, mine: bool, expected: bool) -> None:
    current = replace(OURS, executable=head)
    entry = replace(THEIRS, executable=mine)
    answer = settled(TreeChange(path=A, entry=entry, base=BASE), Tree({A: current}))
    assert answer.entry == replace(BOTH, executable=expected)


def test_a_mode_change_alone_merges_with_a_write() -> None:
    executable = replace(BASE, executable=True)
    answer = settled(TreeChange(path=A, entry=executable, base=BASE), Tree({A: OURS}))
    assert answer.entry == replace(OURS, executable=True)


def test_symlinks_are_never_merged_as_text() -> None:
    change = TreeChange(path=A, entry=link(b"y"), base=link(b"x"))
    assert verdict(change, Tree({A: link(b"x")}))[0] is Verdict.WRITTEN
    assert verdict(change, Tree({A: link(b"z")}))[::3] == (Verdict.CONFLICT, TreeConflict.CONTENT)


def test_a_file_that_became_a_symlink_against_a_write_is_a_conflict() -> None:
    assert verdict(TreeChange(path=A, entry=link(b"x"), base=BASE), Tree({A: OURS}))[3] is TreeConflict.KIND_CHANGED


def test_what_a_policy_sets_aside_is_superseded() -> None:
    policy = MergePolicy(rules=(PathMergeRule(pattern="*.txt", strategy=Strategy.PRIORITY),))
    answer = settled(TreeChange(path=A, entry=OTHER, base=BASE), Tree({A: OURS}), policy)
    assert (answer.verdict, answer.entry) == (Verdict.SUPERSEDED, OURS)


def test_a_rename_obeys_the_stricter_policy_of_both_places() -> None:
    policy = MergePolicy(rules=(PathMergeRule(pattern="safe/**", strategy=Strategy.REVIEW),))
    change = TreeChange(path=B, entry=THEIRS, base=BASE, renamed_from=TreePath("safe/a.txt"))
    answer = settled(change, Tree({TreePath("safe/a.txt"): OURS}), policy)
    assert answer.verdict is Verdict.CONFLICT


def test_contents_that_need_no_merge_are_not_read() -> None:
    unread = TreeEntry(content=ContentHash.of(b"nowhere to be read"))
    assert settled(TreeChange(path=A, entry=unread, base=BASE), Tree({A: BASE})).verdict is Verdict.WRITTEN
    assert settled(TreeChange(path=A, entry=unread, base=BASE), Tree({A: unread})).verdict is Verdict.UNCHANGED
    with pytest.raises(KeyError):
        settled(TreeChange(path=A, entry=unread, base=BASE), Tree({A: OURS}))


def test_what_is_too_large_to_merge_is_the_last_writers() -> None:
    def read(_: ContentHash) -> bytes:
        raise TooLargeToMerge("It is too large.")

    (answer,) = settle([TreeChange(path=A, entry=THEIRS, base=BASE)], Tree({A: OURS}), read)
    assert (answer.verdict, answer.entry) == (Verdict.MERGED, THEIRS)
    assert answer.merged is not None
    assert answer.merged.strategy == Strategy.LAST_WRITER
