"""The shared folder that workers copy from and sync back to.

<base>/.contextbase/leases/                            who is on what: see leases/folder.py
<base>/.contextbase/incoming/<draft>                   a new version, whole, before it takes its place
<base>/.contextbase/conflicts/<worker>/<time>/<path>   a worker's version that could not be merged
"""

import os
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.durable import explained, flush
from contextbase.errors import InvalidInput
from contextbase.ids import RESERVED_FOLDER
from contextbase.merge import EntryKind
from contextbase.standalone.contents import ContentFolder
from contextbase.standalone.model import FileRecord
from contextbase.standalone.tree import FoundEntry, Tree, parent_of
from contextbase.workspaces.folder import listing_of

__all__ = ["BaseFolder"]

_INCOMING: Final = f"{RESERVED_FOLDER}/incoming"
_CONFLICTS: Final = f"{RESERVED_FOLDER}/conflicts"


class BaseFolder(Tree):
    def __init__(self, path: Path) -> None:
        try:
            super().__init__(path)
        except OSError as error:
            raise InvalidInput(f"The base folder {path} cannot be opened: {error.strerror}.") from error
        self.path = path

    def prepare(self) -> Path:
        """Make contextbase's own folder in it; where leases are to be kept."""
        with explained(self.path):
            for folder in (f"{RESERVED_FOLDER}/leases", _INCOMING, _CONFLICTS):
                self.make_folder(folder)
                with self.opened(folder):  # a link in its place leads nowhere we go
                    pass
            if self.find(f"{RESERVED_FOLDER}/.gitignore") is None:
                with self.new_file(f"{RESERVED_FOLDER}/.gitignore") as file:
                    os.write(file, b"*\n")
                    os.fchmod(file, 0o644)
                    flush(file)
        return self.path / RESERVED_FOLDER / "leases"

    def draft(
        self, sandbox_id: str, record: FileRecord, contents: ContentFolder, *, owner: tuple[int, int] | None
    ) -> str:
        """A new version, on the disk and ready to be moved; its name. `owner`: who shall own it, if we may say so."""
        name = f"{sandbox_id}-{uuid4().hex}"
        self._write_record(f"{_INCOMING}/{name}", record, contents, owner=owner if os.geteuid() == 0 else None)
        return name

    def has_draft(self, name: str) -> bool:
        return self.find(f"{_INCOMING}/{name}") is not None

    def drafts_of(self, sandbox_id: str) -> list[str]:
        with self.opened(_INCOMING) as folder:
            return [name for name, _ in listing_of(folder) if name.rpartition("-")[0] == sandbox_id]

    def discard_draft(self, name: str) -> None:
        self.remove(f"{_INCOMING}/{name}")

    def move_draft(self, name: str, path: str) -> None:
        """To its place, at once: whoever looks sees the old version or the new one."""
        parent, target = parent_of(path)
        with self.opened(_INCOMING) as incoming, self.opened(parent) as folder:
            os.rename(name, target, src_dir_fd=incoming, dst_dir_fd=folder)

    def flush_parent(self, path: str) -> None:
        with self.opened(parent_of(path)[0]) as folder:
            flush(folder)

    def change_mode(self, path: str, mode: int) -> None:
        descriptor = self.open_file(path)
        try:
            os.fchmod(descriptor, mode)
            flush(descriptor)
        finally:
            os.close(descriptor)

    def owner_for(self, path: str, found: FoundEntry | None) -> tuple[int, int]:
        """That of what stands there, or of the folder it will be in."""
        if found is not None:
            return found.owner
        with self.opened(parent_of(path)[0]) as folder:
            return FoundEntry.of(os.fstat(folder)).owner

    def keep(self, worker_id: str, time: str, path: str, record: FileRecord, contents: ContentFolder) -> str:
        """A version that conflicted; where it is now, below the base folder."""
        place = f"{_CONFLICTS}/{worker_id}/{time}/{path}"
        self.make_folder(parent_of(place)[0])
        self.remove(place)
        self._write_record(place, record, contents, owner=None)
        self.flush_parent(place)
        return place

    def _write_record(
        self, path: str, record: FileRecord, contents: ContentFolder, *, owner: tuple[int, int] | None
    ) -> None:
        if record.kind is EntryKind.SYMLINK:
            self.make_link(path, contents.read(record.content), owner=owner)
            return
        with self.new_file(path) as file:
            contents.copy_to(record.content, file)
            if owner is not None:
                os.fchown(file, *owner)
            os.fchmod(file, record.mode)
            flush(file)
