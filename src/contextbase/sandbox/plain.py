"""Commands on the machine itself, with limits and nothing that keeps them in."""

import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from contextbase.errors import InvalidInput, MachineProblem, Misconfigured
from contextbase.sandbox.model import HOME, WORKSPACE, SandboxSpec
from contextbase.sandbox.native.driver import NativeDriver
from contextbase.sandbox.native.starter import folder_of
from contextbase.workspaces.model import Owner

__all__ = ["PlainDriver"]

_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "TZ")
"""All that a command gets to see of our own environment: no keys, no tokens."""


class PlainDriver(NativeDriver):
    """For machines that have nothing better, and people who know what they run.

    A command reads and writes whatever its account can, and sees every process and the network; a read-only folder is
    not enforced. /workspace and /home/agent stand for the real folders only in what the caller says, not inside. What a
    command leaves running ends with it, in a sandbox that stays, too. `home`: the account's, if it is not ours; without
    one it is made among the temporary files.
    """

    def __init__(
        self, root: Path, *, owner: Owner, node: str, home: Path | None = None, isolation_not_wanted: bool = False
    ) -> None:
        if not isolation_not_wanted:
            raise Misconfigured(
                "Without a sandbox agents can read and change all that their account can. If that is what you want, "
                "say so in the settings; otherwise use bubblewrap or Docker."
            )
        super().__init__("none", root, owner=owner, node=node, prepare=lambda: _prepared(owner, home))


class _OpenGround:
    """No enclosure: the machine as it is."""

    launcher_root: tuple[tuple[str, str], ...] = ()

    def __init__(self, home: Path) -> None:
        self._home = home

    def holder_line(self, spec: SandboxSpec, folder: Path, *, ends_with_parent: bool) -> list[str]:
        del spec, folder, ends_with_parent
        return []

    def mounts(self, spec: SandboxSpec, folder: Path) -> list[tuple[Path, str]]:
        del folder
        if spec.read_only:
            raise InvalidInput("Without a sandbox no folder can be shown at another place; use bubblewrap or Docker.")
        return []

    def filter(self, spec: SandboxSpec) -> bytes:
        del spec
        return b""

    def path(self, spec: SandboxSpec, inside: PurePosixPath) -> str:
        path = WORKSPACE / inside
        for place, real in ((WORKSPACE, folder_of(spec)), (HOME, spec.home or self._home)):
            if path.is_relative_to(place):
                return str(real / path.relative_to(place))
        return str(path)

    def environment(self, spec: SandboxSpec) -> Mapping[str, str]:
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {"USER": "agent", "LOGNAME": "agent", **passed_on, "HOME": str(spec.home or self._home)}


def _prepared(owner: Owner, home: Path | None) -> _OpenGround:
    if sys.platform != "linux":
        raise MachineProblem("Commands are run under limits on Linux only; use Docker sandboxes on this machine.")
    if owner.uid == 0 or owner.gid == 0:
        raise MachineProblem("Agents never run as root: give them an account of their own.")
    if owner.uid == os.geteuid():
        return _OpenGround(Path.home())
    if os.geteuid() != 0:
        raise MachineProblem(f"Only root can run agents as another account (uid {owner.uid}).")
    place = home or Path(tempfile.gettempdir()) / f"contextbase-home-{owner.uid}"
    _make_home(place, owner)
    return _OpenGround(place)


def _make_home(home: Path, owner: Owner) -> None:
    try:
        home.mkdir(mode=0o700)
        os.chown(home, owner.uid, owner.gid, follow_symlinks=False)
    except FileExistsError:
        status = home.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner.uid:
            raise MachineProblem(f"{home} belongs to another account; remove it.") from None
