"""What the gate knows of a head, and how it moves on."""

from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.ids import ContentHash, NodeId, Seq, TreePath, new_uuid
from contextbase.storage.model import Kind

A, B, FOLDER = TreePath("docs/a.md"), TreePath("docs/b.md"), TreePath("docs")


def live(path: TreePath, seq: int, *, node_id: NodeId | None = None, kind: Kind = Kind.FILE) -> Live:
    return Live(
        node_id=node_id or NodeId(new_uuid()),
        number=1,
        seq=Seq(seq),
        path=path,
        kind=kind,
        content_hash=None if kind is Kind.DELETED else ContentHash.of(path.encode()),
        size=1,
        executable=False,
        mime="",
    )


def test_what_was_put_is_newer_than_what_is_loaded_later() -> None:
    tree = WorkingTree()
    new = live(A, 5)
    tree.put(new)
    tree.learn(live(A, 3, node_id=new.node_id))
    tree.learn_absent([A])
    assert tree.at(A) is new


def test_a_renamed_node_leaves_its_path_and_the_folder_listing() -> None:
    tree = WorkingTree()
    old = live(A, 3)
    tree.learn(old)
    tree.learn_inside(FOLDER, [A])
    moved = live(TreePath("elsewhere.md"), 4, node_id=old.node_id)
    tree.put(moved)
    assert tree.at(A) is None
    assert tree.knows(A)
    assert tree.at(moved.path) is moved
    assert list(tree.below(FOLDER)) == []
    assert tree.left == 1


def test_older_snapshots_are_known_as_far_back_as_the_first_thing_that_was_seen() -> None:
    tree = WorkingTree()
    first = live(A, 3)
    second = live(A, 7, node_id=first.node_id)
    tree.learn(first)
    tree.put(second)
    tree.put(live(A, 9, node_id=first.node_id, kind=Kind.DELETED))
    assert not tree.knows_at(A, Seq(2))
    assert tree.then(A, Seq(3)) is first
    assert tree.then(A, Seq(6)) is first
    assert tree.then(A, Seq(8)) is second
    assert tree.knows_at(A, Seq(9))
    assert tree.then(A, Seq(9)) is None


def test_an_absent_path_says_nothing_about_older_snapshots() -> None:
    tree = WorkingTree()
    tree.learn_absent([A])
    assert tree.knows(A)
    assert not tree.knows_at(A, Seq(1))


def test_undo_takes_back_writes_deletions_and_new_nodes() -> None:
    tree = WorkingTree()
    kept = live(A, 3)
    tree.learn(kept)
    tree.remember()
    tree.put(live(A, 4, node_id=kept.node_id, kind=Kind.DELETED))
    added = live(B, 4)
    tree.put(added)
    tree.undo()
    assert tree.at(A) is kept
    assert tree.node(kept.node_id) is kept
    assert tree.at(B) is None
    assert tree.node(added.node_id) is None
    assert tree.then(A, Seq(4)) is kept
    assert list(tree.below(FOLDER)) == [A]


def test_a_long_past_is_forgotten_from_its_beginning() -> None:
    tree = WorkingTree()
    first = live(A, 1)
    tree.learn(first)
    for seq in range(2, 300):
        tree.put(live(A, seq, node_id=first.node_id))
    assert not tree.knows_at(A, Seq(1))
    newest = tree.then(A, Seq(1000))
    assert newest is not None
    assert newest.seq == 299


def test_what_was_undone_leaves_nothing_known_of_older_snapshots() -> None:
    tree = WorkingTree()
    tree.learn_absent([A])
    tree.remember()
    tree.put(live(A, 5))
    tree.undo()
    assert tree.at(A) is None
    assert not tree.knows_at(A, Seq(5))
