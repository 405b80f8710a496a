"""What every provider of workspaces promises, and the ways in which others like it lost work."""

import asyncio
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.snapshots import FOLDER, Link, MemorySnapshots, Script, commit_time
from tests.support.workspaces import PROVIDERS, Site, new_site, open_site, read_tree, shown, unmount_all

from contextbase.errors import Conflict, NotFound
from contextbase.ids import ContentHash, TreePath
from contextbase.workspaces import workspace_folders
from contextbase.workspaces.model import ScanProblem, View, WorkspaceId
from contextbase.workspaces.syscalls import Rename, rename

_OF_FOLDER = " of a folder"
_BESIDE = {
    "README.md": b"not yours\n",
    "secret.txt": b"outside\n",
    "part/beside.txt": b"outside, too\n",
    "part/sub.txt": b"next to it\n",
    "part/subway/line": b"its name begins alike\n",
}


@pytest.fixture(
    params=[
        *PROVIDERS,
        "overlay by user",
        *(f"{provider} on XFS" for provider in PROVIDERS),
        *(f"{provider}{_OF_FOLDER}" for provider in (*PROVIDERS, "overlay by user")),
    ]
)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """By user: with the kernel's marks in the name space that mounts in user namespaces have. On XFS files share
    blocks, and where the kernel has quotas each workspace is a project that nothing can be renamed into. Of a folder:
    everything is in a folder of the project, beside others."""
    provider, _, disk = request.param.removesuffix(_OF_FOLDER).partition(" on ")
    is_of_folder = request.param.endswith(_OF_FOLDER)
    snapshots = MemorySnapshots(folder="part/sub/", beside=dict(_BESIDE)) if is_of_folder else MemorySnapshots()
    folder = request.getfixturevalue("xfs") / uuid4().hex if disk else tmp_path / "site"
    async with open_site(folder, provider, snapshots=snapshots) as site:
        site.folder = TreePath("part/sub") if is_of_folder else None
        site.snapshots.commit(
            {
                "README.md": b"# Hello\n",
                ".hidden": b"dotfile\n",
                "bin/run": Script(b"#!/bin/sh\n"),
                "data/image.bin": bytes(range(256)) * 40,
                "data/empty": b"",
                "docs/a.md": b"a\n",
                "docs/b.md": b"b\n",
                "docs/deep/c.md": b"c\n",
                "link": Link("docs//a.md"),
                "vacant": FOLDER,
                "größe/über.txt": "ü\n".encode(),
            }
        )
        yield site


async def test_a_workspace_shows_the_snapshot_and_nothing_was_changed(site: Site) -> None:
    workspace = await site.create()
    assert read_tree(workspace.path) == site.snapshots.trees[1]
    assert (workspace.path / "README.md").stat().st_mtime_ns == commit_time(1)
    assert await site.changes(workspace) == set()


async def test_the_empty_project_has_workspaces_too(site: Site) -> None:
    workspace = await site.create(seq=0)
    (workspace.path / "first").write_bytes(b"1")
    assert await site.changes(workspace) == {"created first"}


async def test_later_snapshots_show_what_was_changed_deleted_and_replaced(site: Site) -> None:
    first = await site.create()
    site.snapshots.commit({"docs/a.md": b"A\n", "docs/b.md": None, "new/x": b"x"})
    site.snapshots.commit({"docs/deep/c.md": None, "link": None, "link/inside": b"a folder now", "vacant": None})
    site.snapshots.commit({"new/x": None, "new": b"a file now", "docs/deep": FOLDER, "docs/a.md": None})
    for seq in (3, 2, 4):
        workspace = await site.create(seq=seq)
        assert read_tree(workspace.path) == shown(site.snapshots.trees[seq])
        assert await site.changes(workspace) == set()
    assert read_tree(first.path) == shown(site.snapshots.trees[1])


async def test_every_kind_of_change_is_found(site: Site) -> None:
    workspace = await site.create()
    root = workspace.path
    (root / "README.md").write_bytes(b"# Changed\n")
    (root / "docs" / "new.md").write_bytes(b"")
    (root / "docs" / "b.md").unlink()
    (root / "bin" / "run").chmod(0o644)
    (root / "link").unlink()
    (root / "link").symlink_to("elsewhere")
    (root / "made").mkdir()
    (root / "vacant").rmdir()
    (root / ".secret").write_bytes(b"dotfiles count")
    (root / "data" / "image.bin").write_bytes(b"\x00\xff" * 5000)
    os.truncate(root / "größe" / "über.txt", 0)
    assert await site.changes(workspace) == {
        "modified README.md",
        "created docs/new.md",
        "deleted docs/b.md",
        "mode bin/run",
        "modified link (symlink)",
        "created made (directory)",
        "deleted vacant (directory)",
        "created .secret",
        "modified data/image.bin",
        "modified größe/über.txt",
    }


async def test_changes_carry_the_hash_and_the_bytes_can_be_read(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "README.md").write_bytes(b"new bytes")
    (workspace.path / "bin" / "tool").write_bytes(b"#!")
    (workspace.path / "bin" / "tool").chmod(0o755)
    found = {change.path: change for change in (await site.detect(workspace)).changes}
    content = found[TreePath("README.md")].content
    assert content is not None
    assert (content.hash, content.size, content.executable) == (ContentHash.of(b"new bytes"), 9, False)
    tool = found[TreePath("bin/tool")].content
    assert tool is not None
    assert tool.executable
    work = await site.provider.work_folder(workspace.id)
    assert (work / "README.md").read_bytes() == b"new bytes"


async def test_in_a_closed_workspace_changes_are_found_and_read_and_it_opens_again(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "README.md").write_bytes(b"work")
    await site.provider.close_workspace(workspace.id)
    await site.provider.close_workspace(workspace.id)  # may be repeated
    assert not workspace.path.exists()
    assert await site.changes(workspace) == {"modified README.md"}
    assert (await site.provider.work_folder(workspace.id) / "README.md").read_bytes() == b"work"
    await site.provider.open_workspace(workspace.id)
    assert (workspace.path / "README.md").read_bytes() == b"work"


@pytest.mark.parametrize("how", ["cwd", "fd", "mmap"])
async def test_a_workspace_that_a_process_is_in_cannot_be_closed_and_stays_as_it_was(site: Site, how: str) -> None:
    workspace = await site.create()
    code = {
        "cwd": "import os, sys; os.chdir(sys.argv[1])",
        "fd": "import sys; held = open(sys.argv[1] + '/log', 'w')",
        "mmap": "import mmap, sys; file = open(sys.argv[1] + '/README.md', 'r+b'); held = mmap.mmap(file.fileno(), 0);"
        "file.close()",
    }[how]
    with _running(code, str(workspace.path)):
        with pytest.raises(Conflict):
            await site.provider.close_workspace(workspace.id)
        assert (workspace.path / "README.md").exists()
    await site.provider.close_workspace(workspace.id)
    assert not workspace.path.exists()


async def test_what_is_written_at_the_path_of_a_closed_workspace_is_kept(site: Site) -> None:
    workspace = await site.create()
    await site.provider.close_workspace(workspace.id)
    workspace.path.mkdir()
    (workspace.path / "stray.txt").write_bytes(b"stray")
    await site.provider.open_workspace(workspace.id)
    kept = workspace.path / ".contextbase" / "refused" / "written-while-closed" / "stray.txt"
    assert kept.read_bytes() == b"stray"
    assert (workspace.path / "README.md").exists()


async def test_what_was_changed_back_is_no_change(site: Site) -> None:
    workspace = await site.create()
    root = workspace.path
    original = (root / "README.md").read_bytes()
    (root / "README.md").write_bytes(b"other")
    (root / "README.md").write_bytes(original)
    (root / "docs" / "a.md").touch()
    (root / "bin" / "run").chmod(0o700)
    (root / "new").write_bytes(b"1")
    (root / "new").unlink()
    (root / "docs" / "b.md").unlink()
    (root / "docs" / "b.md").write_bytes(b"b\n")
    shutil.rmtree(root / "docs" / "deep")
    (root / "docs" / "deep").mkdir()
    (root / "docs" / "deep" / "c.md").write_bytes(b"c\n")
    (root / "vacant").chmod(0o700)
    assert await site.changes(workspace) == set()


async def test_a_renamed_file_is_known_also_when_it_was_edited_after(site: Site) -> None:
    workspace = await site.create()
    root = workspace.path
    (root / "docs" / "a.md").rename(root / "docs" / "z.md")
    (root / "README.md").rename(root / "bin" / "README.md")
    with (root / "bin" / "README.md").open("ab") as file:
        file.write(b"more\n")
    found = await site.detect(workspace)
    assert {(change.kind, change.path, change.renamed_from) for change in found.changes} == {
        ("renamed", "docs/z.md", "docs/a.md"),
        ("renamed", "bin/README.md", "README.md"),
    }
    contents = {change.path: change.content for change in found.changes}
    edited = contents[TreePath("bin/README.md")]
    assert edited is not None
    assert edited.hash == ContentHash.of(b"# Hello\nmore\n")


async def test_a_renamed_folder_is_known_with_all_in_it(site: Site) -> None:
    """Where the kernel cannot rename a folder of the project, `mv` copies it: then they are new files."""
    workspace = await site.create(masked=("docs/b.md",))
    root = workspace.path
    (root / "docs/deep/c.md").write_bytes(b"edited\n")
    if not _renamed(root / "docs", root / "manual"):
        shutil.move(root / "docs", root / "manual")
        assert await site.changes(workspace) == {
            "created manual/a.md",
            "created manual/deep/c.md",
            *(
                "deleted docs (directory)",
                "deleted docs/a.md",
                "deleted docs/deep (directory)",
                "deleted docs/deep/c.md",
            ),
        }
        return
    (root / "manual/deep").rename(root / "vacant/deep")
    (root / "manual/new.md").write_bytes(b"n\n")
    assert await site.changes(workspace) == {
        "renamed docs/a.md -> manual/a.md",
        "renamed docs/deep/c.md -> vacant/deep/c.md",
        "created manual/new.md",
        *("deleted docs (directory)", "deleted docs/deep (directory)"),
    }
    found = await site.detect(workspace)
    moved = {(move.source, move.target) for move in found.moved}
    assert moved == {("docs", "manual"), ("docs/deep", "vacant/deep")}
    (root / "manual").rename(root / "docs")
    (root / "vacant/deep").rename(root / "docs/deep")
    (root / "docs/new.md").unlink()
    assert await site.changes(workspace) == {"modified docs/deep/c.md"}


def _renamed(folder: Path, target: Path) -> bool:
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


async def test_a_new_file_is_not_taken_for_a_rename_of_one_deleted_before(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "docs" / "a.md").unlink()
    (workspace.path / "docs" / "new.md").write_bytes(b"a\n")  # may well get the same inode number
    assert await site.changes(workspace) == {"deleted docs/a.md", "created docs/new.md"}


async def test_a_file_moved_over_another_changes_that_one(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "docs" / "a.md").rename(workspace.path / "docs" / "b.md")
    assert await site.changes(workspace) == {"deleted docs/a.md", "modified docs/b.md"}


async def test_a_deleted_folder_is_all_that_was_in_it(site: Site) -> None:
    workspace = await site.create()
    shutil.rmtree(workspace.path / "docs")
    assert await site.changes(workspace) == {
        "deleted docs (directory)",
        "deleted docs/a.md",
        "deleted docs/b.md",
        "deleted docs/deep (directory)",
        "deleted docs/deep/c.md",
    }


async def test_a_remade_folder_deletes_what_it_had_and_no_more(site: Site) -> None:
    """`rm -rf d && mkdir d` is measured against the agent's own snapshot: others' newer files are not in it."""
    workspace = await site.create()
    site.snapshots.commit({"docs/others.md": b"new"})
    await site.provider.sync_lower(site.snapshots.head)
    shutil.rmtree(workspace.path / "docs")
    (workspace.path / "docs" / "deep").mkdir(parents=True)
    (workspace.path / "docs" / "b.md").write_bytes(b"B\n")
    assert await site.changes(workspace) == {
        "deleted docs/a.md",
        "modified docs/b.md",
        "deleted docs/deep/c.md",
        "created docs/deep (directory)",
    }


async def test_a_folder_that_became_empty_is_named(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "docs" / "deep" / "c.md").unlink()
    assert await site.changes(workspace) == {"deleted docs/deep/c.md", "created docs/deep (directory)"}


async def test_files_and_folders_may_take_each_others_place(site: Site) -> None:
    workspace = await site.create()
    root = workspace.path
    shutil.rmtree(root / "docs")
    (root / "docs").write_bytes(b"a file")
    (root / "README.md").unlink()
    (root / "README.md").mkdir()
    (root / "link").unlink()
    (root / "link").mkdir()
    (root / "link" / "a.md").write_bytes(b"not docs/a.md")
    assert await site.changes(workspace) == {
        "modified docs",
        "deleted docs/a.md",
        "deleted docs/b.md",
        "deleted docs/deep (directory)",
        "deleted docs/deep/c.md",
        "modified README.md (directory)",
        "deleted link (symlink)",
        "created link/a.md",
    }


async def test_a_stale_workspace_neither_reverts_nor_deletes_what_others_did_since(site: Site) -> None:
    workspace = await site.create()
    site.snapshots.commit({"README.md": b"others\n", "others.md": b"new"})
    await site.create()
    (workspace.path / "docs" / "a.md").write_bytes(b"mine\n")
    found = await site.detect(workspace)
    assert [change.path for change in found.changes] == ["docs/a.md"]
    assert found.view.snapshot.seq == 1


async def test_workspaces_do_not_see_each_other(site: Site) -> None:
    one, other = await asyncio.gather(site.create(), site.create())
    (one.path / "README.md").write_bytes(b"one")
    (one.path / "docs" / "a.md").unlink()
    assert (other.path / "README.md").read_bytes() == b"# Hello\n"
    assert await site.changes(other) == set()
    assert read_tree((await site.create()).path) == shown(site.snapshots.trees[1])


async def test_hidden_paths_are_not_there_and_are_never_deleted(site: Site) -> None:
    workspace = await site.create(masked=("docs/b.md", "data", ".hidden"))
    assert sorted(path.name for path in workspace.path.iterdir()) == sorted(
        ["README.md", "bin", "docs", "größe", "link", "vacant"]
    )
    assert await site.changes(workspace) == set()
    shutil.rmtree(workspace.path / "docs")
    (workspace.path / "docs").mkdir()
    assert await site.changes(workspace) == {
        "created docs (directory)",
        "deleted docs/a.md",
        "deleted docs/deep (directory)",
        "deleted docs/deep/c.md",
    }


async def test_a_write_to_a_hidden_path_is_found_as_a_new_file(site: Site) -> None:
    workspace = await site.create(masked=("data",))
    (workspace.path / "data").mkdir()
    (workspace.path / "data" / "image.bin").write_bytes(b"guess")
    assert await site.changes(workspace) == {"created data/image.bin"}


async def test_read_only_views_are_shared_and_cannot_be_written(site: Site) -> None:
    view = View(snapshot=site.snapshots.head, masked=frozenset({TreePath("data")}), folder=site.folder)
    path, again = await asyncio.gather(site.provider.open_view(view), site.provider.open_view(view))
    assert path == again
    assert (path / "README.md").read_bytes() == b"# Hello\n"
    assert not (path / "data").exists()
    assert path.stat().st_mode & 0o222 == 0 or not os.access(path, os.W_OK)
    site.snapshots.commit({"README.md": b"newer"})
    assert await site.provider.open_view(View(snapshot=site.snapshots.head, folder=site.folder)) != path
    await site.provider.close_view(view)
    await site.provider.close_view(view)
    assert not path.exists()
    assert await site.provider.open_view(view) == path


async def test_syncing_says_what_was_done(site: Site) -> None:
    total = len(site.snapshots.trees[1]) + len(site.snapshots.beside)
    first = await site.provider.sync_lower(site.snapshots.head)
    assert (first.synced, first.skipped, first.total) == (total, 0, total)
    again = await site.provider.sync_lower(site.snapshots.head)
    assert (again.synced, again.skipped, again.total) == (0, total, total)
    site.snapshots.commit({"README.md": b"newer", "added": b"1"})
    more = await site.provider.sync_lower(site.snapshots.head)
    assert (more.synced, more.skipped, more.total) == (2, total - 1, total + 1)


async def test_a_workspace_is_found_again_after_a_crash_and_after_a_reboot(site: Site) -> None:
    workspace = await site.create(masked=("data",))
    (workspace.path / "README.md").write_bytes(b"unsaved work")
    unmount_all(site.root)  # what a reboot leaves
    site.snapshots.commit({"README.md": b"newer"})
    restarted = new_site(site.root, site.provider.name, site.snapshots)
    assert await restarted.provider.workspaces() == (workspace.id,)
    found = await restarted.provider.open_workspace(workspace.id)
    assert found == workspace
    assert (found.path / "README.md").read_bytes() == b"unsaved work"
    assert not (found.path / "data").exists()
    assert await restarted.changes(found) == {"modified README.md"}
    assert await restarted.provider.open_workspace(workspace.id) == workspace


async def test_a_lost_mirror_is_built_again_and_never_read_as_the_agents_doing(site: Site) -> None:
    site.snapshots.commit({"docs/a.md": None})
    await site.provider.sync_lower(site.snapshots.key(1))
    workspace = await site.create(masked=("data",))
    (workspace.path / "README.md").write_bytes(b"work")
    unmount_all(site.root)
    for layer in (site.root / "mirror").glob("*/*/layers/1-2"):
        shutil.rmtree(layer)
    restarted = new_site(site.root, site.provider.name, site.snapshots)
    with pytest.raises(Conflict, match="open it again"):
        await restarted.detect(workspace)
    shutil.rmtree(site.root / "mirror")
    restarted = new_site(site.root, site.provider.name, site.snapshots)
    await restarted.provider.open_workspace(workspace.id)
    assert await restarted.changes(workspace) == {"modified README.md"}
    assert not (workspace.path / "docs" / "a.md").exists()


async def test_cleanup_removes_everything_and_may_be_repeated(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "new").write_bytes(b"1")
    await site.provider.cleanup(workspace.id)
    await site.provider.cleanup(workspace.id)
    assert not workspace.path.exists()
    assert await site.provider.workspaces() == ()
    with pytest.raises(NotFound):
        await site.provider.open_workspace(workspace.id)
    with pytest.raises(NotFound):
        await site.detect(workspace)
    assert [path for path in site.root.rglob("*") if str(workspace.id) in path.name] == []


class CutOff(Exception):
    pass


async def test_a_removal_that_was_cut_off_leaves_a_whole_workspace_or_none(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for steps in range(3):
        workspace = await site.create()
        (workspace.path / "new").write_bytes(b"1")
        left = iter(range(steps))

        def taken_away(source: str, target: str, how: Rename, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise CutOff
            rename(source, target, how)

        with monkeypatch.context() as patched:
            patched.setattr(workspace_folders, "rename", taken_away)
            with pytest.raises(CutOff):
                await site.provider.cleanup(workspace.id)
        restarted = new_site(site.root, site.provider.name, site.snapshots)
        assert await restarted.provider.workspaces() == (workspace.id,)
        if steps == 0:
            opened = await restarted.provider.open_workspace(workspace.id)
            assert (opened.path / "new").read_bytes() == b"1"
        else:
            with pytest.raises(NotFound):
                await restarted.provider.open_workspace(workspace.id)
        await restarted.provider.cleanup(workspace.id)
        assert [path for path in site.root.rglob("*") if str(workspace.id) in path.name] == []


async def test_an_id_names_one_workspace(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "README.md").write_bytes(b"work")
    with pytest.raises(Conflict):
        await site.provider.create_workspace(workspace.id, workspace.view)
    assert (workspace.path / "README.md").read_bytes() == b"work"


async def test_unknown_workspaces_are_not_found(site: Site) -> None:
    nobody = WorkspaceId(int=uuid4().int)
    with pytest.raises(NotFound):
        await site.provider.detect_changes(nobody)
    with pytest.raises(NotFound):
        await site.provider.open_workspace(nobody)


async def test_ignored_files_stay_out_unless_the_tree_has_them(site: Site) -> None:
    site.snapshots.commit({"build/kept.txt": b"tracked", ".contextbaseignore": b"build/\n*.log\n!keep.log\n"})
    workspace = await site.create()
    root = workspace.path
    (root / "build" / "kept.txt").write_bytes(b"changed")
    (root / "build" / "junk.o").write_bytes(b"1")
    (root / "a.log").write_bytes(b"1")
    (root / "keep.log").write_bytes(b"1")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_bytes(b"ref")
    (root / "pkg" / "__pycache__").mkdir(parents=True)
    found = await site.detect(workspace)
    assert {change.path for change in found.changes} == {"build/kept.txt", "keep.log"}
    assert [one.path for one in found.ignored] == [".git/", "a.log", "build/junk.o", "pkg/__pycache__/"]


async def test_gitignore_files_of_every_folder_are_read_and_the_rule_is_named(site: Site) -> None:
    site.snapshots.commit({".gitignore": b"/dist/\n*.log\n", "pkg/.gitignore": b"!kept.log\nout\n", "pkg/a.py": b"1"})
    workspace = await site.create()
    root = workspace.path
    for name in ("dist/app.js", "a.log", "pkg/kept.log", "pkg/out", "pkg/new/out/x", "pkg/dist/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"1")
    (root / "new").mkdir()
    (root / "new" / ".gitignore").write_bytes(b"*.tmp\n")
    (root / "new" / "a.tmp").write_bytes(b"1")
    found = await site.detect(workspace)
    assert {change.path for change in found.changes} == {"new/.gitignore", "pkg/dist/x", "pkg/kept.log"}
    assert [(one.path, str(one.rule)) for one in found.ignored] == [
        ("a.log", ".gitignore:2: *.log"),
        ("dist/", ".gitignore:1: /dist/"),
        ("new/a.tmp", "new/.gitignore:1: *.tmp"),
        ("pkg/new/out/", "pkg/.gitignore:2: out"),
        ("pkg/out", "pkg/.gitignore:2: out"),
    ]
    unread = await site.provider.detect_changes(workspace.id, reads_gitignore=False)
    assert {one.path for one in unread.ignored} == set()


async def test_the_agents_own_state_of_an_ignore_file_counts(site: Site) -> None:
    site.snapshots.commit({f"{folder}/.gitignore": b"*.log\n" for folder in ("gone", "edited", "linked", "remade")})
    workspace = await site.create()
    root = workspace.path
    (root / "gone" / ".gitignore").unlink()
    (root / "edited" / ".gitignore").write_bytes(b"*.tmp\n")
    (root / "linked" / ".gitignore").unlink()
    (root / "linked" / ".gitignore").symlink_to("../edited/.gitignore")
    shutil.rmtree(root / "remade")
    (root / "remade").mkdir()
    for folder in ("gone", "edited", "linked", "remade"):
        (root / folder / "a.log").write_bytes(b"1")
        (root / folder / "a.tmp").write_bytes(b"1")
    found = await site.detect(workspace)
    assert [one.path for one in found.ignored] == ["edited/a.tmp"]


async def test_the_ignore_file_of_a_renamed_folder_counts_where_the_folder_is_now(site: Site) -> None:
    site.snapshots.commit({"old/.gitignore": b"*.log\n", "old/deep/a.py": b"1"})
    workspace = await site.create()
    root = workspace.path
    if not _renamed(root / "old", root / "new"):
        shutil.move(root / "old", root / "new")
    (root / "new" / "deep" / "a.log").write_bytes(b"1")
    found = await site.detect(workspace)
    assert [(one.path, str(one.rule)) for one in found.ignored] == [("new/deep/a.log", "new/.gitignore:1: *.log")]
    assert {change.path for change in found.changes if change.content} == {"new/.gitignore", "new/deep/a.py"}


async def test_what_a_file_had_before_its_folder_was_renamed_is_no_new_credential(site: Site) -> None:
    token = b"gh" + b"p_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    site.snapshots.commit({"old/.env": b"PASSWORD=1\n", "old/a.py": token + b"\n"})
    workspace = await site.create()
    root = workspace.path
    is_renamed = _renamed(root / "old", root / "new")
    if not is_renamed:
        shutil.move(root / "old", root / "new")  # it copies the files: they are new
    for name, more in ((".env", b"PORT=1\n"), ("a.py", b"more\n"), ("b.py", token)):
        with (root / "new" / name).open("ab") as file:
            file.write(more)
    expected = {"new/b.py"} if is_renamed else {"new/.env", "new/a.py", "new/b.py"}
    assert set((await site.detect(workspace)).suspects) == expected


async def test_a_git_folder_or_file_is_never_committed_whatever_the_rules_say(site: Site) -> None:
    workspace = await site.create()
    root = workspace.path
    (root / ".contextbaseignore").write_bytes(b"!.git\n!*\n")
    (root / "sub" / ".git" / "info").mkdir(parents=True)
    (root / "sub" / ".git" / "HEAD").write_bytes(b"ref")
    (root / "module").mkdir()
    (root / "module" / ".git").write_bytes(b"gitdir: ../sub/.git")
    (root / "module" / "a.txt").write_bytes(b"1")
    found = await site.detect(workspace)
    assert {change.path for change in found.changes} == {".contextbaseignore", "module/a.txt"}
    assert [one.path for one in found.ignored] == ["module/.git", "sub/.git/"]


async def test_excludes_of_the_agents_own_git_folder_count_but_no_link_is_followed_to_them(
    site: Site, tmp_path: Path
) -> None:
    workspace = await site.create()
    root = workspace.path
    (root / "a.tmp").write_bytes(b"1")
    (root / ".git" / "info").mkdir(parents=True)
    (root / ".git" / "info" / "exclude").write_bytes(b"*.tmp\n")
    found = await site.detect(workspace)
    assert [(one.path, one.rule.source) for one in found.ignored][1:] == [("a.tmp", ".git/info/exclude")]
    (tmp_path / "exclude").write_bytes(b"*.tmp\n")
    (root / ".git" / "info" / "exclude").unlink()
    (root / ".git" / "info").rmdir()
    (root / ".git" / "info").symlink_to(tmp_path)
    assert [one.path for one in (await site.detect(workspace)).ignored] == [".git/"]


async def test_what_looks_like_credentials_is_noted_and_only_if_the_file_gains_them(site: Site) -> None:
    token = b"gh" + b"p_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    other = b"gh" + b"p_Z1y2X3w4V5u6T7s8R9q0P1o2N3m4L5k6J7i8"
    site.snapshots.commit({"had.py": token, "gains.py": b"1", ".env": b"A=1", "mode.py": token})
    workspace = await site.create()
    root = workspace.path
    (root / "had.py").write_bytes(token + b" changed")
    (root / "gains.py").write_bytes(b"# " + token + b"\n" + other)
    (root / ".env").write_bytes(b"A=2")
    (root / "mode.py").chmod(0o755)
    (root / "sub").mkdir()
    (root / "sub" / ".env.local").write_bytes(b"PASSWORD=1")
    (root / "sub" / "new.py").write_bytes(other)
    found = await site.detect(workspace)
    assert {path: credential.line for path, credential in found.suspects.items()} == {
        "gains.py": 1,
        "sub/.env.local": None,
        "sub/new.py": 1,
    }


async def test_our_own_notes_in_the_folder_are_not_changes(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / ".contextbase" / "refused").mkdir(parents=True)
    (workspace.path / ".contextbase" / "refused" / "a").write_bytes(b"1")
    assert await site.changes(workspace) == set()


async def test_a_respelled_name_is_reported_and_not_read_as_a_deletion(site: Site) -> None:
    workspace = await site.create()
    (workspace.path / "größe" / "über.txt").rename(workspace.path / "größe" / "u\u0308ber.txt")
    found = await site.detect(workspace)
    assert found.changes == ()
    assert [(reported.name.decode(), reported.problem) for reported in found.reported] == [
        ("größe/u\u0308ber.txt", ScanProblem.NAME)
    ]


@contextmanager
def _running(code: str, argument: str) -> Iterator[None]:
    """Another process, from when it has done this until the block ends."""
    command = [sys.executable, "-c", f"{code}; print(flush=True); sys.stdin.read()", argument]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield
        process.communicate()
