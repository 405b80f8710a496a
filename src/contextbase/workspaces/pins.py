"""What each workspace and view stands on: its note and its claim to the layers in one file, `<root>/pins/<holder>`."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from contextbase.errors import Damaged
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.workspaces.model import SnapshotKey, View

__all__ = ["Pins", "Stack"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """A view, and the folders that show it, the topmost first."""

    view: View
    folders: tuple[str, ...]

    def is_there(self) -> bool:
        """Whether no folder is missing: a view without one of its layers is another view."""
        return all(Path(folder).is_dir() for folder in self.folders)


class Pins:
    """Every method blocks for a moment. A pin is whole or not there; that it survives a power cut in its first seconds
    is up to whoever keeps a registry."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = str(folder)

    def write(self, holder: str, stack: Stack) -> None:
        snapshot = stack.view.snapshot
        written = {
            "project_id": str(snapshot.project_id),
            "epoch": str(snapshot.epoch),
            "seq": snapshot.seq,
            "masked": sorted(stack.view.masked),
            "folders": stack.folders,
        }
        draft = f"{self._folder}/{holder}.draft"
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps(written).encode())
        finally:
            os.close(file)
        os.rename(draft, f"{self._folder}/{holder}")  # noqa: PTH104 - a Path costs more than the rename

    def read(self, holder: str) -> Stack | None:
        file = Path(self._folder, holder)
        try:
            written = json.loads(file.read_bytes())
            snapshot = SnapshotKey(
                project_id=ProjectId(UUID(written["project_id"])),
                epoch=UUID(written["epoch"]),
                seq=Seq(written["seq"]),
            )
            masked = frozenset(TreePath.stored(path) for path in written["masked"])
            return Stack(view=View(snapshot=snapshot, masked=masked), folders=tuple(written["folders"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"{file} is not what was written there; the workspace itself is untouched.") from error

    def remove(self, holder: str) -> None:
        Path(self._folder, holder).unlink(missing_ok=True)
        Path(self._folder, f"{holder}.draft").unlink(missing_ok=True)

    def held(self) -> set[str]:
        """Every folder that something stands on."""
        held: set[str] = set()
        for file in Path(self._folder).iterdir():
            stack = self.read(file.name) if file.suffix != ".draft" else None
            if stack is not None:
                held.update(stack.folders)
        return held
