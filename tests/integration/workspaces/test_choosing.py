"""The provider is chosen by trying, and the reason can be read."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.require import require_program, require_root
from tests.support.snapshots import MemorySnapshots
from tests.support.workspaces import mounts_below, unmount_all

from contextbase.errors import MachineProblem
from contextbase.workspaces import backend_choice
from contextbase.workspaces.backend_choice import choose_provider, open_provider
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import Owner, View, WorkspaceId
from contextbase.workspaces.overlay import XattrKind

_REPOSITORY = Path(__file__).parents[3]


def test_where_mounts_work_overlay_is_chosen_and_nothing_is_left(tmp_path: Path) -> None:
    require_root()
    choice = choose_provider(tmp_path / "root")
    assert (choice.name, choice.xattr_kind) == ("overlay", XattrKind.TRUSTED)
    assert mounts_below(tmp_path) == []
    assert list((tmp_path / "root").iterdir()) == []


def test_copies_can_be_asked_for(tmp_path: Path) -> None:
    choice = choose_provider(tmp_path, wanted="copy")
    assert choice.name == "copy"
    assert "The settings ask for copies" in choice.reason


def test_where_mounts_are_refused_copies_are_made_and_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(backend_choice, "mount_overlay", refuse)
    choice = choose_provider(tmp_path)
    assert choice.name == "copy"
    assert "Operation not permitted" in choice.reason
    with pytest.raises(MachineProblem, match="set the workspace provider to 'copy'"):
        choose_provider(tmp_path, wanted="overlay")


@pytest.mark.parametrize("wanted", ["overlay", "copy"])
async def test_what_was_chosen_works(tmp_path: Path, wanted: str) -> None:
    if wanted == "overlay":
        require_root()
    snapshots = MemorySnapshots()
    snapshots.commit({"a": b"1"})
    provider = open_provider(
        choose_provider(tmp_path, wanted=wanted),
        tmp_path,
        Mirrors(tmp_path, snapshots, owner=Owner.of_this_process()),
    )
    try:
        workspace = await provider.create_workspace(WorkspaceId(int=5), View(snapshot=snapshots.head))
        assert provider.name == wanted
        assert (workspace.path / "a").read_bytes() == b"1"
    finally:
        unmount_all(tmp_path)


_IN_A_NAMESPACE = """
import asyncio, sys
from pathlib import Path
from contextbase.workspaces.backend_choice import choose_provider, open_provider
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import Owner, View, WorkspaceId
from tests.support.snapshots import MemorySnapshots

async def work(root):
    snapshots = MemorySnapshots()
    snapshots.commit({"a": b"1", "b": b"2", "folder/c": b"3"})
    choice = choose_provider(root)
    provider = open_provider(choice, root, Mirrors(root, snapshots, owner=Owner.of_agents(None)))
    workspace = await provider.create_workspace(WorkspaceId(int=5), View(snapshot=snapshots.head))
    (workspace.path / "a").write_bytes(b"4")
    (workspace.path / "b").unlink()
    (workspace.path / "folder" / "c").unlink()
    (workspace.path / "folder").rmdir()
    (workspace.path / "folder").mkdir()
    found = await provider.detect_changes(workspace.id)
    print(choice.name, choice.xattr_kind, *(f"{change.kind}:{change.path}" for change in found.changes))
    await provider.cleanup(workspace.id)

asyncio.run(work(Path(sys.argv[1])))
"""


def test_in_a_user_namespace_of_one_account_overlays_work_with_its_own_attributes(tmp_path: Path) -> None:
    unshare = require_program("unshare", "install util-linux")
    command = [unshare, "--user", "--map-root-user", "--mount", sys.executable, "-c", _IN_A_NAMESPACE, tmp_path]
    ended = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.stdout == "overlay user modified:a deleted:b created:folder deleted:folder/c\n", ended.stderr
