"""Which provider this machine can have, found out by doing what it does."""

import contextlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from contextbase.errors import MachineProblem
from contextbase.workspaces.copies import CopyBackend
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import ScanLimits
from contextbase.workspaces.overlay import OverlayBackend, XattrKind, overlay_options
from contextbase.workspaces.ports import FolderBackend
from contextbase.workspaces.quotas import ProjectQuotas
from contextbase.workspaces.syscalls import clone_file, is_whiteout, mount_overlay, unmount

__all__ = ["BackendChoice", "choose_provider", "open_provider"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendChoice:
    name: str
    xattr_kind: XattrKind | None  # of an overlay
    reason: str  # a sentence for `doctor`


def choose_provider(root: Path, *, wanted: str | None = None) -> BackendChoice:
    """`overlay` where a mount below `root` really works, else `copy`. Asked for one that does not work here, it is a
    `MachineProblem` that says why. Blocks for some milliseconds."""
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    if wanted == CopyBackend.name:
        return _copying(root, "The settings ask for copies.")
    refusals = []
    for kind in XattrKind:
        refusal = _refusal_of_overlay(root, kind)
        if refusal is None:
            reason = f"Overlay mounts work in {root}: a workspace costs a millisecond and holds only what was changed."
            return BackendChoice(name=OverlayBackend.name, xattr_kind=kind, reason=reason)
        refusals.append(f"with {kind} attributes {refusal}")
    sentence = f"Overlay mounts do not work in {root} ({'; '.join(refusals)})."
    if wanted is not None:
        raise MachineProblem(f"{sentence} Run as root on Linux, or set the workspace provider to 'copy'.")
    return _copying(root, sentence)


def open_provider(
    choice: BackendChoice,
    root: Path,
    mirrors: Mirrors,
    *,
    limits: ScanLimits | None = None,
    quotas: ProjectQuotas | None = None,
) -> FolderBackend:
    if choice.xattr_kind is not None:
        return OverlayBackend(root, mirrors, xattr_kind=choice.xattr_kind, limits=limits, quotas=quotas)
    return CopyBackend(root, mirrors, limits=limits, quotas=quotas)


def _copying(root: Path, why: str) -> BackendChoice:
    cost = "share blocks until they are changed" if _can_clone(root) else "take as much room as the project"
    return BackendChoice(name=CopyBackend.name, xattr_kind=None, reason=f"{why} Workspaces are copies; they {cost}.")


def _refusal_of_overlay(root: Path, kind: XattrKind) -> str | None:
    """What goes wrong when a file is changed, one deleted and a folder remade in a mount; None: nothing."""
    if sys.platform != "linux":
        return "there is no such thing on this system"
    with tempfile.TemporaryDirectory(dir=root, prefix="probe-") as name:
        probe = Path(name)
        for folder in ("lower/remade", "upper", "work", "merged"):
            (probe / folder).mkdir(parents=True)
        for file in ("changed", "deleted", "remade/old"):
            (probe / "lower" / file).write_bytes(b"old")
        try:
            mount_overlay(
                str(probe / "merged"),
                lower=[str(probe / "lower")],
                upper=str(probe / "upper"),
                work=str(probe / "work"),
                options=overlay_options(kind),
            )
        except OSError as error:
            return f"the mount is refused: {error.strerror}"
        try:
            return _flaw_of(probe, kind)
        except OSError as error:
            return f"writing fails: {error.strerror}"
        finally:
            unmount(str(probe / "merged"))


def _flaw_of(probe: Path, kind: XattrKind) -> str | None:
    merged, upper = probe / "merged", probe / "upper"
    (merged / "changed").write_bytes(b"new")
    (merged / "deleted").unlink()
    (merged / "remade" / "old").unlink()
    (merged / "remade").rmdir()
    (merged / "remade").mkdir()
    if (upper / "changed").read_bytes() != b"new" or (probe / "lower" / "changed").read_bytes() != b"old":
        return "changes do not go to the upper folder"
    if not is_whiteout((upper / "deleted").lstat()):
        return "deletions leave no whiteout"
    with contextlib.suppress(OSError):
        if os.getxattr(upper / "remade", f"{kind}.overlay.opaque") == b"y":
            return None
    return "a folder that was removed and made again is not marked"


def _can_clone(root: Path) -> bool:
    with tempfile.TemporaryFile(dir=root) as source, tempfile.TemporaryFile(dir=root) as target:
        source.write(b"x" * 4096)
        source.flush()
        return clone_file(source.fileno(), target.fileno())
