"""What an import will do: what it writes, deletes and holds back, in which commits. Nothing is done yet."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from contextbase.identity.levels import matches
from contextbase.ids import TreePath
from contextbase.interfaces.cli.local_tree import LocalEntry, LocalTree
from contextbase.interfaces.cli.transfers import INLINE_BYTES
from contextbase.sdk import Client
from contextbase.wire.tree import EntryView
from contextbase.workspaces.credentials import MOST_SCANNED, credential_in, reason_to_hold_back

__all__ = ["ImportPlan", "ProjectTree", "planned"]

_COMMIT_BYTES: Final = 4 * 1024 * 1024
_COMMIT_CHANGES: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectTree:
    """A project, or a folder of it, at the head."""

    name: str
    below: TreePath | None
    seq: int
    entries: dict[str, EntryView]

    @classmethod
    def read(cls, client: Client, name: str, below: TreePath | None) -> "ProjectTree":
        entries: dict[str, EntryView] = {}
        seq, after = None, ""
        while True:
            page = client.checkout(name, prefix=below, seq=seq, after=after, limit=10_000)
            entries |= {entry.path: entry for entry in page.entries}
            seq = page.seq
            if page.next_after is None:
                return cls(name=name, below=below, seq=seq, entries=entries)
            after = page.next_after

    @property
    def tracked(self) -> set[str]:
        """Its paths, and the folders above them."""
        return {*self.entries, *(folder for path in self.entries for folder in TreePath.stored(path).folders)}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportPlan:
    removed: list[str]
    written: list[LocalEntry]
    equal: int
    held_back: dict[str, str]  # by path: sentences about files that look like credentials

    @property
    def changes(self) -> int:
        return len(self.removed) + len(self.written)

    @property
    def deletions(self) -> list[list[str]]:
        """For one commit each; they come first, for they make room."""
        return [self.removed[start : start + _COMMIT_CHANGES] for start in range(0, len(self.removed), _COMMIT_CHANGES)]

    @property
    def portions(self) -> list[list[LocalEntry]]:
        """What to write, for one commit each. Large files are uploaded by themselves and add nothing to a commit."""
        portions: list[list[LocalEntry]] = []
        room = 0
        for entry in self.written:
            size = entry.size if entry.size < INLINE_BYTES else 0
            if not portions or size > room or len(portions[-1]) == _COMMIT_CHANGES:
                portions.append([])
                room = _COMMIT_BYTES
            portions[-1].append(entry)
            room -= size
        return portions

    @property
    def commits(self) -> int:
        return len(self.deletions) + len(self.portions)

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.written)


def planned(
    client: Client,
    project: ProjectTree,
    tree: LocalTree,
    *,
    delete: bool,
    allowed: Collection[str],
    advance: Callable[[int], None],
) -> ImportPlan:
    """What makes the project's tree that of the folder. `allowed`: patterns of files that may look like credentials."""
    written: list[LocalEntry] = []
    held_back: dict[str, str] = {}
    for entry in tree.entries:
        if not _is_equal(tree, entry, project):
            reason = _reason_to_hold_back(client, project, tree, entry, allowed)
            if reason is None:
                written.append(entry)
            else:
                held_back[entry.path] = reason
        advance(1)
    return ImportPlan(
        removed=_removed(tree, project) if delete else [],
        written=written,
        equal=len(tree.entries) - len(written) - len(held_back),
        held_back=held_back,
    )


def _is_equal(tree: LocalTree, entry: LocalEntry, project: ProjectTree) -> bool:
    found = project.entries.get(entry.path)
    if entry.kind == "directory":
        return found is not None and found.kind == "directory"
    if found is None or (found.kind, found.size, found.executable) != (entry.kind, entry.size, entry.executable):
        return False
    return found.hash == tree.hash(entry)


def _reason_to_hold_back(
    client: Client, project: ProjectTree, tree: LocalTree, entry: LocalEntry, allowed: Collection[str]
) -> str | None:
    if entry.kind != "file" or any(matches(pattern, entry.path) for pattern in allowed):
        return None
    older = project.entries.get(entry.path)
    with tree.opened(entry) as file:
        start = file.read(MOST_SCANNED)
    found = credential_in(entry.path if older is None else None, start)
    if found is not None and older is not None and older.kind == "file":
        known = b""
        for piece in client.download(project.name, path=entry.path, seq=project.seq):
            known += piece
            if len(known) >= MOST_SCANNED:
                break
        found = credential_in(None, start, known=known)
    return None if found is None else reason_to_hold_back(entry.path, found)


def _removed(tree: LocalTree, project: ProjectTree) -> list[str]:
    """What the folder does not have. What is in it and could not be read, or is excluded, is not taken for deleted."""
    here = {entry.path for entry in tree.entries}
    folders = {folder for path in here for folder in path.folders}
    below = f"{project.below}/" if project.below else ""
    unknown = [f"{below}{name}" for name in tree.left_out]
    return [
        path
        for path, entry in project.entries.items()
        if path not in here
        and not (entry.kind == "directory" and path in folders)
        and not any(path == name or path.startswith(f"{name}/") for name in unknown)
        and not tree.choice.excludes.excludes(path.removeprefix(below), is_folder=entry.kind == "directory")
    ]
