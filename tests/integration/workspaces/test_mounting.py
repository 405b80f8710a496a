"""Mounts are the same by either of the kernel's two ways, whatever the folders are called."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.require import require_root
from tests.support.workspaces import unmount_all

from contextbase.workspaces import syscalls
from contextbase.workspaces.overlay import XattrKind, overlay_options
from contextbase.workspaces.syscalls import mount_overlay


@pytest.fixture(params=["fsopen", "classic"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    require_root()
    if request.param == "classic":
        monkeypatch.setattr(syscalls, "_has_single_layers", lambda: False)
    elif not syscalls._has_single_layers():
        pytest.skip("The kernel, older than 6.7, has the classic way alone.")
    yield tmp_path
    unmount_all(tmp_path)


def test_layers_hide_each_other_from_the_top_and_changes_go_to_the_upper(folder: Path) -> None:
    place = folder / "odd: name, with\\signs"
    for name in ("one", "two", "upper", "work"):
        (place / name).mkdir(parents=True)
    (folder / "merged").mkdir()
    (place / "one" / "file").write_bytes(b"top")
    (place / "two" / "file").write_bytes(b"below")
    (place / "two" / "other").write_bytes(b"below")
    mount_overlay(
        str(folder / "merged"),
        lower=[str(place / "one"), str(place / "two")],
        upper=str(place / "upper"),
        work=str(place / "work"),
        options=overlay_options(XattrKind.TRUSTED),
    )
    assert (folder / "merged" / "file").read_bytes() == b"top"
    (folder / "merged" / "other").write_bytes(b"changed")
    assert (place / "upper" / "other").read_bytes() == b"changed"
    mounted = next(line for line in Path("/proc/mounts").read_text().splitlines() if f"{folder}/merged " in line)
    assert {"nosuid", "nodev", "rw"} <= set(mounted.split()[3].split(","))


def test_without_an_upper_nothing_can_be_written(folder: Path) -> None:
    for name in ("one", "two", "merged"):
        (folder / name).mkdir()
    lower = [str(folder / "one"), str(folder / "two")]
    mount_overlay(str(folder / "merged"), lower=lower, options=overlay_options(XattrKind.TRUSTED))
    with pytest.raises(OSError, match="Read-only"):
        (folder / "merged" / "new").write_bytes(b"1")


def test_a_refused_mount_says_what_was_refused(folder: Path) -> None:
    (folder / "merged").mkdir()
    with pytest.raises(OSError, match=r"nowhere|merged"):
        mount_overlay(str(folder / "merged"), lower=[str(folder / "nowhere")] * 2)
