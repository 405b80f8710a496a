"""What bubblewrap needs of this machine, and what this machine lacks of it."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.errors import MachineProblem
from contextbase.sandbox.bubblewrap.command_line import VisibleMachine
from contextbase.sandbox.bubblewrap.etc import make_etc
from contextbase.workspaces.model import Owner

__all__ = ["look_at_machine"]

_NEEDED: Final = ("--info-fd", "--perms", "--size", "--seccomp", "--remount-ro")


def look_at_machine(root: Path, owner: Owner, extra_read_only: tuple[Path, ...]) -> VisibleMachine:
    """`MachineProblem` when no sandbox can be made here for this account."""
    if sys.platform != "linux":
        raise MachineProblem("bubblewrap sandboxes need Linux; use Docker sandboxes on this machine.")
    if owner.uid == 0 or owner.gid == 0:
        raise MachineProblem("Agents never run as root: give them an account of their own.")
    is_root = os.geteuid() == 0
    if not is_root and owner.uid != os.geteuid():
        raise MachineProblem(f"Only root can run agents as another account (uid {owner.uid}).")
    program = shutil.which("bwrap")
    if program is None:
        raise MachineProblem("bubblewrap is not installed; install it, for example with `apt install bubblewrap`.")
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=30).stdout.split()
    missing = [option for option in _NEEDED if option not in known]
    if missing:
        raise MachineProblem(f"{program} is too old: it does not know {', '.join(missing)}. 0.6 or newer is needed.")
    return VisibleMachine(
        program=program,
        options=frozenset(word for word in known if word.startswith("--")),
        etc=_etc(root, owner),
        extra_read_only=extra_read_only,
        has_own_root=is_root,
    )


def _etc(root: Path, owner: Owner) -> Path:
    """Named by its content: it may be in use, and is never changed."""
    draft = root / f"etc-{uuid4().hex}"
    make_etc(draft, owner)
    digest = hashlib.sha256()
    for path in sorted(draft.rglob("*")):
        content = bytes(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        digest.update(b"%d %d %b%b" % (len(bytes(path)), len(content), bytes(path.relative_to(draft)), content))
    final = root / f"etc-{digest.hexdigest()[:16]}"
    if final.exists():
        shutil.rmtree(draft)
    else:
        draft.rename(final)
    return final
