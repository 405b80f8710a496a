"""A folder on this machine, as it is read for an import."""

import os
from pathlib import Path

from contextbase.interfaces.cli.local_tree import LocalTree


def test_folders_deeper_than_a_path_may_be_are_left_out_once(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"x")
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(1500):  # more than Python would go down
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    try:
        tree = LocalTree.scan(tmp_path)
    finally:
        _remove(tmp_path / "d")
    assert [entry.name for entry in tree.entries] == ["kept"]
    assert len(tree.left_out) == 1


def _remove(chain: Path) -> None:
    """From its upper end: what cleans up after tests goes down as Python does."""
    for _ in range(1500):
        rest = chain.with_name("rest")
        if (chain / "d").exists():
            (chain / "d").rename(rest)
        chain.rmdir()
        if rest.exists():
            rest.rename(chain)
