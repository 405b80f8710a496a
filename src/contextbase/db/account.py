"""The account the embedded PostgreSQL runs as: our own, unless we are root, whom PostgreSQL refuses.

As root it runs under a uid that no user has. No system user is added, and only files in PostgreSQL's own folder are
given to that uid, so neither people nor other services can read them.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

__all__ = ["OsAccount"]

# Outside the ranges Debian, Fedora and macOS hand out to users, services and containers' first 65,536 ids' end.
_UNUSED_UID: Final = 61787


@dataclass(frozen=True, kw_only=True, slots=True)
class OsAccount:
    """A uid to run PostgreSQL's programs as; None: the one we have."""

    uid: int | None = None

    @classmethod
    def choose(cls, owned_folder: Path) -> Self:
        """Ours if we are not root; else the owner of the folder from an earlier start, else a uid nobody has."""
        if os.geteuid() != 0:
            return cls()
        try:
            owner = owned_folder.lstat().st_uid
        except FileNotFoundError:
            owner = 0
        # Root's, or the maker's: an earlier start was killed before the folder was given to its account.
        unfinished = owner in (0, cls(uid=owner).with_name().uid)
        return cls(uid=_UNUSED_UID if unfinished else owner)

    def process_arguments(self) -> dict[str, Any]:
        """Keyword arguments that make `subprocess` start a child as this account, in an environment from nothing."""
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
        arguments: dict[str, Any] = {"env": environment, "cwd": "/", "stdin": subprocess.DEVNULL}
        if self.uid is not None:
            arguments |= {"user": self.uid, "group": self.uid, "extra_groups": []}
        return arguments

    def with_name(self) -> "OsAccount":
        """An account that has a name: `initdb` insists on one. Give its files back with `take`."""
        return self if self.uid is None else OsAccount(uid=pwd.getpwnam("nobody").pw_uid)

    def has_name(self) -> bool:
        try:
            pwd.getpwuid(os.geteuid() if self.uid is None else self.uid)
        except KeyError:  # usual in containers that run under a number
            return False
        return True

    def take(self, folder: Path) -> None:
        """Own the folder and all in it."""
        if self.uid is None:
            return
        os.chown(folder, self.uid, self.uid, follow_symlinks=False)
        for parent, folders, names in os.walk(folder):
            for name in (*folders, *names):
                os.chown(Path(parent) / name, self.uid, self.uid, follow_symlinks=False)

    def can_enter(self, folder: Path) -> bool:
        """Whether this account gets into the folder at all: an ancestor it may not pass makes it unreachable."""
        if self.uid is None:
            return os.access(folder, os.X_OK)
        shell = shutil.which("sh") or "/bin/sh"
        arguments = self.process_arguments()
        probe = subprocess.run(
            [shell, "-c", 'cd "$1"', "sh", str(folder)], **arguments, capture_output=True, timeout=30, check=False
        )
        return probe.returncode == 0
