"""File systems of a test's own, in a file: made, mounted, and gone after."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.support.require import require_program, require_root, unavailable

from contextbase.workspaces.syscalls import unmount

__all__ = ["DISKS", "disk_with_quotas", "xfs_disk"]

DISKS: Final = ("xfs", "ext4")
_SIZE: Final = 320 << 20  # the least that XFS takes; nothing is written but what is used
_MAKE: Final = {
    "xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"],
    "ext4": ["mkfs.ext4", "-q", "-O", "project,quota", "-E", "quotatype=prjquota"],
}
_QUOTAS: Final = {"xfs": "pquota", "ext4": "prjquota"}
_PACKAGES: Final = {"xfs": "apt-get install xfsprogs", "ext4": "apt-get install e2fsprogs"}


@contextmanager
def xfs_disk(folder: Path) -> Iterator[Path]:
    """XFS whose files can share blocks, with project quotas where this kernel has them."""
    with _image(folder, "xfs") as image:
        problem = _mount(image, folder, f"loop,{_QUOTAS['xfs']}")
        if problem is not None:
            problem = _mount(image, folder, "loop")
        if problem is not None:
            unavailable(f"This test mounts a file system from a file, which needs loop devices: {problem}")
        with _unmounted_after(folder):
            yield folder


@contextmanager
def disk_with_quotas(folder: Path, kind: str) -> Iterator[Path]:
    with _image(folder, kind) as image:
        problem = _mount(image, folder, f"loop,{_QUOTAS[kind]}")
        if problem is not None:
            # Not `unavailable`: whether a kernel was built with quotas is nothing a package or a setting can change.
            pytest.skip(f"The kernel has no project quotas for {kind}: {problem}")
        with _unmounted_after(folder):
            yield folder


@contextmanager
def _image(folder: Path, kind: str) -> Iterator[Path]:
    require_root()
    program = require_program(_MAKE[kind][0], _PACKAGES[kind])
    folder.mkdir()
    image = folder.with_name(f"{folder.name}.image")
    with image.open("xb") as file:
        file.truncate(_SIZE)
    try:
        subprocess.run([program, *_MAKE[kind][1:], image], check=True)
        yield image
    finally:
        image.unlink()


def _mount(image: Path, folder: Path, options: str) -> str | None:
    """None, or why not."""
    mount = require_program("mount", "install util-linux")
    done = subprocess.run([mount, "-o", options, image, folder], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else " ".join(done.stderr.split())


@contextmanager
def _unmounted_after(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        unmount(str(folder))  # the loop device goes with the mount
