"""A folder as a plain dictionary: what an agent's edits make of it, and which changes a scan must find."""

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.snapshots import FOLDER, Link, Node, Script, Tree

from contextbase.workspaces.syscalls import Rename, rename

__all__ = ["Edit", "FolderModel", "with_folders", "without"]

_NAMES: Final = ("a", "b.txt", ".c", "d", "ü")
Edit = tuple[str, int, int, bytes]
"""A verb, two numbers that pick its paths among those there are, and bytes."""


def with_folders(tree: Tree) -> Tree:
    """With every folder named, empty or not."""
    folders = {path[:at]: FOLDER for path in tree for at, character in enumerate(path) if character == "/"}
    return {**folders, **tree}


def without(tree: Tree, masked: Iterable[str]) -> Tree:
    hidden = tuple(masked)
    return {
        path: node
        for path, node in tree.items()
        if not any(path == place or path.startswith(f"{place}/") for place in hidden)
    }


@dataclass
class FolderModel:
    """Edits go to `tree` and to each of the real folders."""

    before: Tree
    roots: tuple[Path, ...]
    tree: Tree = field(init=False)
    came_from: dict[str, str] = field(init=False)  # which file, link or folder of `before` it is

    def __post_init__(self) -> None:
        self.tree = dict(self.before)
        self.came_from = {path: path for path in self.before}

    def apply(self, edit: Edit) -> None:
        verb, first, second, content = edit
        getattr(self, f"_{verb}")(first, second, content)

    def changes(self) -> set[str]:
        """As `described` would put it."""
        found = {path: self._change_of(path) for path in self.before.keys() | self.tree.keys()}
        for path, source in self.came_from.items():
            is_folder = FOLDER in (self.tree[path], self.before[source])
            if found[path] == "created" and found.get(source) == "deleted" and not is_folder:
                found[path], found[source] = f"renamed {source} ->", ""
        for path, node in self.tree.items():
            source = self._with_its_folder(path) or path
            if (
                found[path] == "created"
                and found.get(source) == "deleted"
                and FOLDER not in (node, self.before[source])
            ):
                found[path], found[source] = f"renamed {source} ->", ""
        return {self._described(path, change) for path, change in found.items() if change}

    def moves(self) -> set[tuple[str, str]]:
        """The folders that stand elsewhere now, but for those that went with the folder they are in."""
        return {
            (source, path)
            for path, source in self.came_from.items()
            if self.tree[path] is FOLDER and source != path and source not in self.tree
            if self._with_its_folder(path) != source
        }

    def _with_its_folder(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        above = self.came_from.get(folder) if folder else ""
        return None if above is None else f"{above}/{name}" if above else name

    def _change_of(self, path: str) -> str:
        before, after = self.before.get(path), self.tree.get(path)
        if after is None:
            return "deleted"
        if after is FOLDER:
            is_empty = not _has_child(self.tree, path)
            if before is None or before is FOLDER:
                was_empty = before is FOLDER and not _has_child(self.before, path)
                return "created" if is_empty and not was_empty else ""
            return "modified" if is_empty else "deleted"
        if before is None:
            return "created"
        if _content(before) != _content(after):
            return "modified"
        return "mode" if before != after else ""

    def _described(self, path: str, change: str) -> str:
        node = self.before[path] if change == "deleted" else self.tree[path]
        kind = " (directory)" if node is FOLDER else " (symlink)" if isinstance(node, Link) else ""
        if change.startswith("renamed"):
            kind = ""
        return f"{change} {path}{kind}"

    def _write(self, first: int, _: int, content: bytes) -> None:
        """In place: the file stays the same one."""
        path = self._file_or_new(first)
        if path is None:
            return
        self._on_disk(lambda root: (root / path).write_bytes(content))
        self.tree[path] = Script(content) if isinstance(self.tree.get(path), Script) else content

    def _save(self, first: int, _: int, content: bytes) -> None:
        """As editors do it: a new file takes the old one's place."""
        path = self._file_or_new(first)
        if path is None:
            return

        def save(root: Path) -> None:
            (root / "~saving").write_bytes(content)
            (root / "~saving").rename(root / path)

        self._on_disk(save)
        self.tree[path] = content
        self.came_from.pop(path, None)

    def _unlink(self, first: int, _: int, __: bytes) -> None:
        path = _pick([path for path, node in self.tree.items() if node is not FOLDER], first)
        if path is not None:
            self._on_disk(lambda root: (root / path).unlink())
            self._forget(path)

    def _chmod(self, first: int, _: int, __: bytes) -> None:
        path = self._file(first)
        if path is not None:
            node = self.tree[path]
            self.tree[path] = node.content if isinstance(node, Script) else Script(_content(node))
            self._on_disk(lambda root: (root / path).chmod(0o644 if isinstance(node, Script) else 0o755))

    def _link(self, first: int, second: int, _: bytes) -> None:
        path = self._new(first)
        if path is not None:
            target = ("a", "../x", "/etc/passwd", "a//b/")[second % 4]
            self._on_disk(lambda root: os.symlink(target, root / path))  # noqa: PTH211 - a Path would respell it
            self.tree[path] = Link(target)

    def _mkdir(self, first: int, _: int, __: bytes) -> None:
        path = self._new(first)
        if path is not None:
            self._on_disk(lambda root: (root / path).mkdir())
            self.tree[path] = FOLDER

    def _rmtree(self, first: int, _: int, __: bytes) -> None:
        path = self._folder(first)
        if path is not None:
            self._on_disk(lambda root: shutil.rmtree(root / path))
            self._forget(path)

    def _remake(self, first: int, _: int, __: bytes) -> None:
        path = self._folder(first)
        if path is not None:
            self._rmtree(first, 0, b"")
            self._on_disk(lambda root: (root / path).mkdir())
            self.tree[path] = FOLDER

    def _rename(self, first: int, second: int, _: bytes) -> None:
        path, target = self._file_or_link(first), self._file_or_new(second)
        if path is None or target is None or path == target:
            return
        self._on_disk(lambda root: (root / path).rename(root / target))
        self.tree[target] = self.tree.pop(path)
        source = self.came_from.pop(path, None)
        self.came_from.pop(target, None)
        if source is not None:
            self.came_from[target] = source

    def _rename_folder(self, first: int, second: int, _: bytes) -> None:
        """To a new name, or over an empty folder."""
        path = self._folder(first)
        empty = [folder for folder in self.tree if self.tree[folder] is FOLDER and not _has_child(self.tree, folder)]
        target = _pick(empty, second // 2) if second % 4 == 0 else self._new(second // 2)
        if path is None or target is None or target == path or target.startswith(f"{path}/"):
            return
        self._on_disk(lambda root: (root / path).rename(root / target))
        self._forget(target)
        self._move({path: target})

    def _swap_folders(self, first: int, second: int, _: bytes) -> None:
        path, other = self._folder(first), self._folder(second)
        if path is None or other is None or f"{path}/".startswith(f"{other}/") or other.startswith(f"{path}/"):
            return
        self._on_disk(lambda root: rename(str(root / path), str(root / other), Rename.EXCHANGE))
        self._move({path: other, other: path})

    def _move(self, targets: dict[str, str]) -> None:
        def moved(path: str) -> str:
            for source, target in targets.items():
                if path == source or path.startswith(f"{source}/"):
                    return target + path[len(source) :]
            return path

        self.tree = {moved(path): node for path, node in self.tree.items()}
        self.came_from = {moved(path): source for path, source in self.came_from.items()}

    def _copy_folder(self, first: int, second: int, _: bytes) -> None:
        """What `mv` does with a folder where the kernel will not: copies, then deletes."""
        path, target = self._folder(first), self._new(second)
        if path is None or target is None or target.startswith(f"{path}/"):
            return
        self._on_disk(lambda root: shutil.copytree(root / path, root / target, symlinks=True))
        for old in [old for old in self.tree if old == path or old.startswith(f"{path}/")]:
            self.tree[target + old[len(path) :]] = self.tree[old]
        self._on_disk(lambda root: shutil.rmtree(root / path))
        self._forget(path)

    def _on_disk(self, edit: Callable[[Path], object]) -> None:
        for root in self.roots:
            edit(root)

    def _forget(self, path: str) -> None:
        for old in [old for old in self.tree if old == path or old.startswith(f"{path}/")]:
            del self.tree[old]
            self.came_from.pop(old, None)

    def _file(self, number: int) -> str | None:
        return _pick([path for path, node in self.tree.items() if isinstance(node, bytes | Script)], number)

    def _file_or_link(self, number: int) -> str | None:
        return _pick([path for path, node in self.tree.items() if node is not FOLDER], number)

    def _folder(self, number: int) -> str | None:
        return _pick([path for path, node in self.tree.items() if node is FOLDER], number)

    def _new(self, number: int) -> str | None:
        folders = ["", *(f"{path}/" for path, node in self.tree.items() if node is FOLDER)]
        return _pick(
            [path for folder in folders for name in _NAMES if (path := folder + name) not in self.tree], number
        )

    def _file_or_new(self, number: int) -> str | None:
        return self._file(number // 2) if number % 2 else self._new(number // 2)


def _pick(paths: list[str], number: int) -> str | None:
    return sorted(paths)[number % len(paths)] if paths else None


def _has_child(tree: Tree, folder: str) -> bool:
    return any(path.startswith(f"{folder}/") for path in tree)


def _content(node: Node) -> bytes:
    return node.content if isinstance(node, Script) else node if isinstance(node, bytes) else repr(node).encode()
