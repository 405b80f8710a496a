"""The provider is chosen by trying, and the reason can be read."""

from pathlib import Path

import pytest
from tests.support.require import require_root
from tests.support.snapshots import MemorySnapshots
from tests.support.workspaces import mounts_below, unmount_all

from contextbase.errors import MachineProblem
from contextbase.workspaces import choosing
from contextbase.workspaces.choosing import choose_provider, open_provider
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import Owner, View, WorkspaceId
from contextbase.workspaces.overlay import XattrKind


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

    monkeypatch.setattr(choosing, "mount_overlay", refuse)
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
