"""Operations replayed give what is there: by a plain model that carries them out one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.property.files.test_file_tree import PATHS, Entries, flat, trees

from contextbase.files.file_tree import FileLeaf, built
from contextbase.files.model import FileAction
from contextbase.files.registered_tree import RegisteredTree
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind

ACTIONS = st.sampled_from([FileAction.WRITE, FileAction.DELETE, FileAction.RENAME, FileAction.MAKE_FOLDER])
STEPS = st.lists(st.tuples(ACTIONS, PATHS, PATHS), max_size=15)


class Model:
    """Each file with where it comes from: an operation's number, or the path at which it was given."""

    def __init__(self, given: Entries) -> None:
        self.files: dict[str, int | str] = {path: path for path, leaf in given.items() if leaf is not None}
        self.folders = {path for path, leaf in given.items() if leaf is None}
        self.folders |= {folder for path in given for folder in TreePath(path).folders}
        self.rows: list[dict[str, Any]] = []

    def apply(self, action: FileAction, path: str, target: str) -> None:
        number = len(self.rows) + 1
        there = sorted(self.folders | self.files.keys())
        if there and action is not FileAction.MAKE_FOLDER:  # mostly about something that is there
            path = there[sum(map(ord, path)) % len(there)] if number % 4 else path
        elif self.rows and self.rows[-1]["kind"] == Kind.DELETED:
            path = self.rows[-1]["path"]
        if action is FileAction.WRITE and self._has_room(path) and path not in self.folders:
            self._add(number, path, Kind.FILE)
        elif action is FileAction.MAKE_FOLDER and self._has_room(path) and path not in self.folders | self.files.keys():
            self.folders |= {path, *TreePath(path).folders}
            self._row(number, action, path, Kind.DIRECTORY)
        elif action is FileAction.DELETE and path in self.folders | self.files.keys():
            self.files = {one: origin for one, origin in self.files.items() if not _is_at(one, path)}
            self.folders = {one for one in self.folders if not _is_at(one, path)}
            self._row(number, action, path, Kind.DELETED)
        elif action is FileAction.RENAME and path in self.folders | self.files.keys():
            taken = target in self.folders | self.files.keys() or _is_at(target, path)
            if not taken and self._has_room(target):
                self._move(number, path, target)

    def _add(self, number: int, path: str, kind: Kind) -> None:
        self.files[path] = number
        self.folders |= set(TreePath(path).folders)
        self._row(number, FileAction.WRITE, path, kind)

    def _move(self, number: int, path: str, target: str) -> None:
        kind = Kind.FILE if path in self.files else Kind.DIRECTORY
        self.files = {_moved(one, path, target): origin for one, origin in self.files.items()}
        self.folders = {_moved(one, path, target) for one in self.folders} | set(TreePath(target).folders)
        if kind is Kind.FILE:
            self.files[target] = number
        self._row(number, FileAction.RENAME, target, kind, previous=path)

    def _has_room(self, path: str) -> bool:
        return not any(folder in self.files for folder in TreePath(path).folders)

    def _row(self, number: int, action: FileAction, path: str, kind: Kind, previous: str | None = None) -> None:
        is_file = kind is Kind.FILE
        self.rows.append(
            {
                "number": number,
                "action": action.value,
                "path": path,
                "previous_path": previous,
                "kind": kind.value,
                "new_hash": hash_of(number) if is_file else None,
                "size": number if is_file else 0,
                "executable": False,
                "modified_ns": number,
                "stamp": number,
            }
        )


def hash_of(number: int) -> ContentHash:
    return ContentHash.of(str(number).encode())


def _is_at(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _moved(path: str, source: str, target: str) -> str:
    return target + path[len(source) :] if _is_at(path, source) else path


@given(entries=trees(), steps=STEPS, cut=st.integers(0, 15))
def test_operations_replayed_give_the_files_that_are_there(
    entries: Entries, steps: list[tuple[FileAction, str, str]], cut: int
) -> None:
    model = Model(entries)
    for step in steps:
        model.apply(*step)
    registered = RegisteredTree(built(entries.items()))
    registered.replay(model.rows[:cut])
    registered.replay(model.rows[cut:])
    found, _ = flat(registered.tree)
    leaves = {path: leaf for path, leaf in found.items() if leaf is not None}
    assert leaves.keys() == model.files.keys()
    for path, origin in model.files.items():
        if isinstance(origin, int):
            assert leaves[path] == FileLeaf(Kind.FILE, origin, origin, "", False, origin)
            assert registered.hash_of(path) == hash_of(origin)
        else:
            assert leaves[path] == entries[origin]
            assert registered.hash_of(path) is None
            assert registered.given_as(path) == origin
