"""The mirror: layers that are whole or not there, shared, short in number, and never changed."""

import asyncio
import stat
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.require import require_root
from tests.support.snapshots import FOLDER, Link, MemorySnapshots, Tree, commit_time
from tests.support.workspaces import Site, mounts_below, new_site, open_site, read_tree, shown

from contextbase.errors import BlobMissing
from contextbase.ids import ContentHash, TreePath
from contextbase.workspaces.layer_view import LayerView
from contextbase.workspaces.layers import read_layers
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import Owner, SnapshotKey, View
from contextbase.workspaces.overlay import OverlayBackend
from contextbase.workspaces.stacks import MOST_LAYERS, chain_to
from contextbase.workspaces.syscalls import is_whiteout, unmount


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path / "site", "overlay") as site:
        yield site


class _WithoutBlob(MemorySnapshots):
    """Cannot give one content."""

    @asynccontextmanager
    async def contents(
        self, snapshot: SnapshotKey, hashes: Collection[ContentHash]
    ) -> AsyncIterator[Mapping[ContentHash, bytes | Path]]:
        async with super().contents(snapshot, hashes) as contents:
            yield {each: content for each, content in contents.items() if content != b"5"}


def layers_folder(site: Site) -> Path:
    return site.mirrors.folder_of(site.snapshots.head) / "layers"


async def test_a_new_snapshot_costs_its_changes(site: Site) -> None:
    site.snapshots.commit({f"{number}.txt": b"x" for number in range(50)})
    await site.provider.sync_lower(site.snapshots.head)
    site.snapshots.commit({"1.txt": b"y"})
    site.snapshots.commit({"2.txt": None})
    await site.provider.sync_lower(site.snapshots.head)
    assert site.snapshots.asked == [(0, 1), (1, 3)]
    assert sorted(layer.entries for layer in read_layers(layers_folder(site))) == [2, 50]


async def test_stacks_stay_short_and_little_is_written_twice(site: Site) -> None:
    site.snapshots.commit({f"base/{number}": b"x" for number in range(300)})
    for turn in range(60):
        site.snapshots.commit(
            {f"turn/{turn}": b"1", f"turn/{turn - 5}": None if turn >= 5 else b"", "same": b"%d" % turn}
        )
        await site.provider.sync_lower(site.snapshots.head)
    layers = read_layers(layers_folder(site))
    for seq in (61, 40, 13):
        chain = chain_to(site.snapshots.key(seq).seq, layers)
        assert chain is not None
        assert len(chain) <= MOST_LAYERS
        workspace = await site.create(seq=seq)
        assert read_tree(workspace.path) == site.snapshots.trees[seq]
    assert [layer.older for layer in layers if layer.entries >= 300] == [0]  # the whole tree was written once
    assert sum(layer.entries for layer in layers if layer.older) < 60 * 3 * 4


async def test_deletions_hide_something_and_nothing_else(site: Site) -> None:
    history: list[Tree] = [
        {
            "a": b"1",
            "d/x": b"1",
            "d/y": b"1",
            "e/f/g": b"1",
            "h": FOLDER,
            "i": FOLDER,
            "i/j": b"1",
            "k": b"1",
            "l/m": b"1",
        },
        {"d/y": b"1", "i": FOLDER, "k/now": b"a folder", "l": b"a file"},
        {"i/n": b"1", "k": Link("l")},
    ]
    site.snapshots.trees += history
    for seq in (1, 2, 3):
        await site.provider.sync_lower(site.snapshots.key(seq))
    below: list[str] = []
    for layer in sorted(read_layers(layers_folder(site)), key=lambda layer: layer.newer):
        view = LayerView(below)
        for path in layer.tree.rglob("*"):
            if is_whiteout(path.lstat()):
                assert view.entry(str(path.relative_to(layer.tree))), f"{path} hides nothing"
        below.insert(0, str(layer.tree))
        workspace = await site.create(seq=layer.newer)
        assert read_tree(workspace.path) == shown(history[layer.newer - 1])


async def test_equal_files_do_not_share_an_inode_with_each_other_or_the_blob(site: Site, tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(b"large")
    site.snapshots.blobs[ContentHash.of(b"large")] = blob
    site.snapshots.commit({"one": b"large", "other": b"large"})
    workspace = await site.create()
    assert read_tree(workspace.path) == {"one": b"large", "other": b"large"}
    tree = read_layers(layers_folder(site))[0].tree
    assert len({(tree / "one").stat().st_ino, (tree / "other").stat().st_ino, blob.stat().st_ino}) == 3


async def test_a_layer_that_was_never_finished_is_not_used_and_goes(site: Site) -> None:
    site.snapshots.commit({"a": b"1", "b": b"2"})
    await site.provider.sync_lower(site.snapshots.head)
    layer = read_layers(layers_folder(site))[0]
    layer.marker.rename(layer.marker.with_suffix(".draft"))
    (layer.tree / "b").unlink()
    restarted = new_site(site.root, "overlay", site.snapshots)
    assert read_tree((await restarted.create()).path) == {"a": b"1", "b": b"2"}


async def test_a_source_that_fails_half_way_leaves_nothing_behind(site: Site) -> None:
    site.snapshots.commit({f"{number}": b"%d" % number for number in range(10)})
    failing = new_site(site.root, "overlay", _WithoutBlob(trees=site.snapshots.trees))
    with pytest.raises(BlobMissing):
        await failing.create()
    assert read_layers(layers_folder(site)) == []
    assert await failing.provider.workspaces() == ()
    assert read_tree((await site.create()).path) == site.snapshots.trees[1]


async def test_many_at_once_build_a_layer_once(site: Site) -> None:
    site.snapshots.commit({f"{number}": b"%d" % number for number in range(20)})
    others = [new_site(site.root, "overlay", site.snapshots) for _ in range(4)]
    made = await asyncio.gather(*(other.create() for other in others for _ in range(5)))
    assert len(mounts_below(site.root)) == len(made) == 20
    assert site.snapshots.asked == [(0, 1)]


async def test_what_is_in_use_stays_and_the_rest_makes_room(site: Site) -> None:
    site.snapshots.commit({"a": b"x" * 1000, "b": b"x" * 1000})
    old = await site.create()
    site.snapshots.commit({"a": b"y" * 500})
    newer = await site.create(masked=("b",))
    await site.provider.cleanup(newer.id)
    assert await site.mirror.evict(cap=10_000) == 0
    assert await site.mirror.evict(cap=0) == 500
    assert read_tree(old.path) == site.snapshots.trees[1]
    again = await site.create(masked=("b",))
    assert read_tree(again.path) == {"a": b"y" * 500}
    await site.provider.cleanup(old.id)
    assert await site.mirror.evict(cap=0) == 0  # the newer stack stands on the older layer


async def test_workspaces_on_one_stack_share_the_note_of_it(site: Site) -> None:
    site.snapshots.commit({"a": b"1"})
    made = [await site.create() for _ in range(3)]
    assert len({(site.root / "pins" / str(workspace.id)).stat().st_ino for workspace in made}) == 1
    for workspace in made:
        await site.mirror.pin(str(workspace.id), workspace.view)  # again: nothing changes
    assert len(list((site.root / "pins").iterdir())) == 3
    for workspace in made:
        await site.provider.cleanup(workspace.id)
    await site.mirror.evict(cap=0)
    assert list((site.root / "stacks").iterdir()) == []
    assert read_tree((await site.create()).path) == {"a": b"1"}


async def test_the_least_recently_used_goes_first(site: Site) -> None:
    for content in (b"one", b"two", b"three"):
        site.snapshots.commit({"a": content})
        workspace = await site.create()
        await site.provider.cleanup(workspace.id)
    first = await site.create(seq=2)
    await site.provider.cleanup(first.id)
    assert await site.mirror.evict(cap=6) == 5
    assert sorted(layer.newer for layer in read_layers(layers_folder(site))) == [1, 2]


async def test_layers_of_snapshots_that_nobody_uses_do_not_pile_up(site: Site) -> None:
    site.snapshots.commit({f"{number}": b"x" for number in range(20)})
    old = await site.create()
    for turn in range(150):
        site.snapshots.commit({"same": b"%d" % turn})
        await site.provider.sync_lower(site.snapshots.head)
    assert len(read_layers(layers_folder(site))) <= 65
    assert read_tree((await site.create()).path) == site.snapshots.trees[-1]
    assert read_tree(old.path) == site.snapshots.trees[1]


async def test_layers_and_workspaces_belong_to_the_agents_account(site: Site) -> None:
    require_root()
    site.snapshots.commit({"d/a": b"1", "link": Link("a"), "e": FOLDER})
    owner = Owner(uid=12345, gid=23456)
    mirrors = Mirrors(site.root, site.snapshots, owner=owner)
    site.provider, site.mirrors = OverlayBackend(site.root, mirrors), mirrors
    workspace = await site.create(masked=("d/a",))
    found = [workspace.path, *workspace.path.rglob("*")]
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in found} == {(owner.uid, owner.gid)}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o755}


async def test_an_upper_is_mounted_once_however_many_open_it(site: Site) -> None:
    site.snapshots.commit({"a": b"1"})
    workspace = await site.create()
    unmount(str(workspace.path))
    others = [new_site(site.root, "overlay", site.snapshots) for _ in range(5)]
    await asyncio.gather(*(other.provider.open_workspace(workspace.id) for other in others))
    assert mounts_below(site.root) == [str(workspace.path)]


async def test_times_are_those_of_the_commits_also_above_a_mask(site: Site) -> None:
    await site.provider.sync_lower(site.snapshots.commit({"d/a": b"1", "d/b": b"1"}))
    site.snapshots.commit({"e": b"1"})
    masked = await site.provider.open_view(View(snapshot=site.snapshots.head, masked=frozenset({TreePath("d/b")})))
    times = {path: (masked / path).stat().st_mtime_ns for path in ("", "d", "d/a", "e")}
    assert times == {"": commit_time(2), "d": commit_time(1), "d/a": commit_time(1), "e": commit_time(2)}


async def test_views_of_one_snapshot_share_its_layers(site: Site) -> None:
    site.snapshots.commit({"a": b"1", "b": b"1"})
    paths = [
        await site.provider.open_view(View(snapshot=site.snapshots.head, masked=frozenset(masked)))
        for masked in ({TreePath("a")}, {TreePath("b")}, set[TreePath]())
    ]
    assert [sorted(entry.name for entry in path.iterdir()) for path in paths] == [["b"], ["a"], ["a", "b"]]
    assert len(read_layers(layers_folder(site))) == 1
    with pytest.raises(OSError, match="Read-only"):
        (paths[0] / "new").write_bytes(b"1")


async def test_names_of_masks_and_views_tell_neither_what_is_hidden_nor_whether_anything_is(
    site: Site, tmp_path: Path
) -> None:
    site.snapshots.commit({"a": b"1", "b": b"1"})
    nothing, something = await site.create(), await site.create(masked=("b",))
    stacks = [site.mirrors.pins.read(str(workspace.id)) for workspace in (nothing, something)]
    folders = [stack.folders for stack in stacks if stack is not None]
    assert len({len(each) for each in folders}) == 1
    async with open_site(tmp_path / "other", "overlay", snapshots=site.snapshots) as other:
        names = [
            {path.name for place in ("views", "mirror/*/*/masks") for path in each.root.glob(f"{place}/*")}
            for each in (site, other)
            if await each.provider.open_view(View(snapshot=site.snapshots.head, masked=frozenset({TreePath("b")})))
        ]
    assert all(names)
    assert names[0].isdisjoint(names[1])  # each machine has a key of its own
    key = site.root / "names.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


async def test_a_workspace_from_before_every_view_had_a_mask_opens_as_it_was(site: Site) -> None:
    site.snapshots.commit({"a": b"1", "b": b"1"})
    workspace = await site.create()
    (workspace.path / "a").write_bytes(b"work")
    unmount(str(workspace.path))
    stack = site.mirrors.pins.read(str(workspace.id))
    assert stack is not None
    site.mirrors.pins.write(str(workspace.id), replace(stack, folders=stack.folders[1:]))
    again = new_site(site.root, "overlay", site.snapshots)
    await again.provider.open_workspace(workspace.id)
    assert read_tree(workspace.path) == {"a": b"work", "b": b"1"}
    assert await again.changes(workspace) == {"modified a"}


def places_folder(site: Site) -> Path:
    return site.mirrors.folder_of(site.snapshots.head) / "places"


def own_layers(site: Site) -> list[int]:
    """How much was written for folders alone."""
    return sorted(layer.entries for place in places_folder(site).iterdir() for layer in read_layers(place))


async def test_a_small_folder_of_a_large_tree_costs_what_is_in_it(site: Site) -> None:
    site.folder = TreePath("mine")
    site.snapshots.commit({f"others/{number}": b"x" for number in range(50)} | {"mine/a": b"1", "mine/b": b"1"})
    first = await site.create()
    site.snapshots.commit({f"others/{number}": b"y" for number in range(50)} | {"mine/a": b"2", "mine/b": None})
    second = await site.create()
    assert read_tree(first.path) == {"a": b"1", "b": b"1"}
    assert read_tree(second.path) == {"a": b"2"}
    assert own_layers(site) == [2, 2]
    assert read_layers(layers_folder(site)) == []


async def test_a_folder_of_a_tree_that_is_here_costs_nothing(site: Site) -> None:
    site.snapshots.commit({f"others/{number}": b"x" for number in range(50)} | {"mine/a": b"1"})
    await site.provider.sync_lower(site.snapshots.head)
    site.folder = TreePath("mine")
    assert read_tree((await site.create()).path) == {"a": b"1"}
    site.snapshots.commit({"mine/a": b"2"})
    assert read_tree((await site.create()).path) == {"a": b"2"}
    assert own_layers(site) == []


async def test_layers_of_folders_that_nobody_uses_make_room(site: Site) -> None:
    site.snapshots.commit({f"{number}/a": b"x" * 10 for number in range(70)})
    site.folder = TreePath("0")
    kept = await site.create()
    for number in range(1, 70):
        site.folder = TreePath(str(number))
        workspace = await site.create()
        await site.provider.cleanup(workspace.id)
    assert len(own_layers(site)) < 64
    assert await site.mirror.size() == 10 * len(own_layers(site))
    await site.mirror.evict(cap=0)
    assert len(list(places_folder(site).iterdir())) == 1
    assert read_tree(kept.path) == {"a": b"x" * 10}
