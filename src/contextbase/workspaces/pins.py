"""What each workspace and view stands on: its note and its claim to the layers in one.

<root>/stacks/<digest>  a view and its layers, durable
<root>/pins/<holder>    a hard link to one of them: a thousand workspaces on a stack cost one file
"""

import errno
import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from contextbase.data_folder import write_private
from contextbase.errors import Damaged
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.workspaces.model import SnapshotKey, View

__all__ = ["Pins", "Stack"]

_DRAFT: Final = ".draft"
_TRIES: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """A view, and the folders that show it, the topmost first."""

    view: View
    folders: tuple[str, ...]  # of the whole snapshot: what is kept
    shown: tuple[str, ...]  # of the view's folder: in those, as far as they have it

    def is_there(self) -> bool:
        """Whether no folder is missing: a view without one of its layers is another view."""
        try:
            for folder in self.folders:
                os.stat(folder)  # noqa: PTH116 - a Path costs more than the look
        except FileNotFoundError:
            return False
        return True


class Pins:
    """Every method blocks for a moment. What a pin says is durable and whole; that the pin itself survives a power cut
    in its first seconds is up to whoever keeps a registry."""

    def __init__(self, root: Path) -> None:
        for name in ("pins", "stacks"):
            (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = str(root / "pins")
        self._stacks = root / "stacks"

    def write(self, holder: str, stack: Stack) -> None:
        """Replaces the holder's earlier pin, if there is one."""
        written = _serialized(stack)
        source = f"{self._stacks}/{sha256(written).hexdigest()}"
        pin = f"{self._folder}/{holder}"
        for _ in range(_TRIES):
            try:
                _link(source, pin)
                return
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EMLINK):  # not written yet, or enough links
                    raise
                write_private(Path(source), written.decode())
        raise OSError(errno.EAGAIN, "what it links to is removed all the time", pin)

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
            folder = None if written.get("folder") is None else TreePath.stored(written["folder"])
            view = View(snapshot=snapshot, masked=masked, folder=folder)
            folders = tuple(written["folders"])
            return Stack(view=view, folders=folders, shown=tuple(written.get("shown", folders)))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"{file} is not what was written there; the workspace itself is untouched.") from error

    def remove(self, holder: str) -> None:
        Path(self._folder, holder).unlink(missing_ok=True)

    def held(self) -> set[str]:
        """Every folder that something stands on."""
        held: set[str] = set()
        seen: set[int] = set()
        for file in Path(self._folder).iterdir():
            if file.suffix == _DRAFT:
                continue
            try:
                inode = file.stat().st_ino
            except FileNotFoundError:
                continue  # removed since: nothing stands on it
            stack = self.read(file.name) if inode not in seen else None
            seen.add(inode)
            held.update(stack.folders if stack is not None else ())
        return held

    def forget_unused(self) -> None:
        """Who links to one in this very moment writes it again."""
        for draft in Path(self._folder).glob(f"*{_DRAFT}"):
            draft.unlink(missing_ok=True)
        for file in self._stacks.iterdir():
            if file.stat().st_nlink == 1:
                file.unlink()


def _link(source: str, pin: str) -> None:
    try:
        os.link(source, pin)
    except FileExistsError:
        draft = f"{pin}.{uuid4().hex}{_DRAFT}"
        os.link(source, draft)
        Path(draft).rename(pin)
        Path(draft).unlink(missing_ok=True)  # two names of one file: then the rename did nothing


def _serialized(stack: Stack) -> bytes:
    snapshot = stack.view.snapshot
    written: dict[str, object] = {
        "project_id": str(snapshot.project_id),
        "epoch": str(snapshot.epoch),
        "seq": snapshot.seq,
        "masked": sorted(stack.view.masked),
        "folders": stack.folders,
    }
    if stack.view.folder is not None:
        written |= {"folder": stack.view.folder, "shown": stack.shown}
    return json.dumps(written).encode()
