"""What tells one kind of sandbox from another, of those whose commands the launcher starts."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from contextbase.sandbox.model import SandboxSpec

__all__ = ["Enclosure"]


class Enclosure(Protocol):
    @property
    def launcher_root(self) -> Sequence[tuple[str, str]]:
        """Pairs of a path of this machine and where the launcher sees it; empty: it sees what we see."""
        ...

    def mounts(self, spec: SandboxSpec, folder: Path) -> Sequence[tuple[Path, str]]:
        """Folders of this machine and where in the launcher's own root they are to be mounted for a new holder."""
        ...

    def holder_line(self, spec: SandboxSpec, folder: Path, *, ends_with_parent: bool) -> Sequence[str]:
        """The command line of a process whose namespaces commands join; empty: they run on the machine itself."""
        ...

    def filter(self, spec: SandboxSpec) -> bytes:
        """Of kernel calls, for seccomp; empty: none."""
        ...

    def path(self, spec: SandboxSpec, inside: PurePosixPath) -> str:
        """Where commands find a path of the sandbox; what is relative is below /workspace."""
        ...

    def environment(self, spec: SandboxSpec) -> Mapping[str, str]:
        """What every command gets, before what the caller says."""
        ...
