"""Files of a workspace, as the executor reaches them inside a sandbox."""

from pathlib import Path

import pytest

from contextbase.executor.workspace_tree import PathRefused, WorkspaceTree

LONGEST_NAME = "汉" * 85  # 255 bytes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    (root / "folder").symlink_to(tmp_path)
    (root / "file").symlink_to(tmp_path / "outside.txt")
    return root


def test_a_file_with_the_longest_name_is_written_and_read(root: Path) -> None:
    tree = WorkspaceTree(root)
    for content in (b"one", b"two"):
        with tree.replaced(LONGEST_NAME) as file:
            file.write(content)
        with tree.opened(LONGEST_NAME) as file:
            assert file.read() == content
    assert sorted(path.name for path in root.iterdir()) == ["file", "folder", LONGEST_NAME]


@pytest.mark.parametrize(
    "path", ["", ".", "..", "../outside.txt", "a/../../outside.txt", "folder/outside.txt", "a\0b", "x" * 300, "/../x"]
)
def test_no_path_leads_out_of_the_workspace(root: Path, path: str) -> None:
    tree = WorkspaceTree(root)
    with pytest.raises(PathRefused), tree.opened(path):
        pass
    with pytest.raises(PathRefused), tree.replaced(path) as file:
        file.write(b"bad")
    assert (root.parent / "outside.txt").read_text() == "outside"
    assert sorted(path.name for path in root.parent.iterdir()) == ["outside.txt", "workspace"]


def test_a_link_is_not_read_and_is_replaced_as_itself(root: Path) -> None:
    tree = WorkspaceTree(root)
    with pytest.raises(PathRefused), tree.opened("file"):
        pass
    with tree.replaced("file") as file:
        file.write(b"mine")
    assert (root / "file").read_bytes() == b"mine"
    assert (root.parent / "outside.txt").read_text() == "outside"
