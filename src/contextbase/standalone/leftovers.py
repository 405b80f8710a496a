"""Sandboxes that somebody left: to go on with, or to clean up."""

from pathlib import Path

from contextbase.errors import Damaged
from contextbase.standalone.metadata import Metadata
from contextbase.standalone.sandbox import WorkerSandbox
from contextbase.standalone.sandbox_folders import SandboxFolder, SandboxFolders

__all__ = ["clean", "reopened"]


def reopened(root: Path, worker_id: str) -> WorkerSandbox:
    """The sandbox of a worker, with the task and base folder it had; to be set up. `NotFound`, `Damaged`."""
    place = SandboxFolders(root).claim(worker_id, make=False)
    try:
        metadata = _metadata(place)
    finally:
        place.let_go()
    return WorkerSandbox(worker_id, metadata.task_id, metadata.base_dir, root=root)


def clean(root: Path, worker_id: str, *, discard: bool = False) -> None:
    """Remove a sandbox; `Conflict` when it is in use, or, unless it is to be discarded, has what the base has not."""
    place = SandboxFolders(root).claim(worker_id, make=False)
    try:
        if _may_go_at_once(place, discard=discard):
            place.remove()
            return
    finally:
        place.let_go()
    with reopened(root, worker_id) as sandbox:
        sandbox.cleanup(discard=discard)


def _may_go_at_once(place: SandboxFolder, *, discard: bool) -> bool:
    try:
        metadata = _metadata(place)
    except Damaged:
        if discard:
            return True
        raise
    return metadata.is_finished or (discard and not Path(metadata.base_dir).is_dir())


def _metadata(place: SandboxFolder) -> Metadata:
    try:
        return Metadata.read(place.path)
    except FileNotFoundError:
        raise Damaged(f"{place.path} is not a sandbox, or was never finished; if so, discard it.") from None
