"""What the server asks the launcher for, one process of ours for each order."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

__all__ = ["Order", "StartRefusal", "Task"]


class Task(StrEnum):
    HOLD = "hold"  # start a holder and leave it
    RUN = "run"  # run a command inside
    CONNECT = "connect"  # hand back a connection to a socket inside
    PACK = "pack"  # write an archive of a folder inside to standard output
    UNPACK = "unpack"  # unpack the archive on standard input into a folder inside


class StartRefusal(StrEnum):
    """Why nothing was started."""

    MACHINE = "machine"
    FOLDER = "folder"  # the one to start in is not there
    GONE = "gone"  # the holder is
    NOBODY = "nobody"  # listens on that socket


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """Beside it go descriptors: standard input, output and error, and the mounts to attach.

    With a `holder` to start, that is joined and ends with the task, unless the task is to hold.
    """

    task: Task
    uid: int
    gid: int
    holder: Sequence[str] = ()  # the command line of a new one
    mounts: Sequence[str] = ()  # where that one finds the workspace's mount, and others
    process: int = 0  # the process to join, when there is a holder
    started: int = 0  # and when it was started, in ticks since the machine was
    groups: Sequence[str] = ()  # the files through which the command joins its control groups
    stoppers: Sequence[tuple[str, str]] = ()  # files and what to write there before all in the groups is killed
    limits: Mapping[str, int] = field(default_factory=dict)  # by the names of `resource`
    filter: str = ""  # seccomp, in hexadecimal
    argv: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    path: str = "/"  # the folder to start in or to pack, or the socket to connect to
    terminal: tuple[int, int] | None = None  # its rows and columns

    @property
    def is_outside(self) -> bool:
        """There is no sandbox to join: the task is for the machine itself."""
        return not self.holder and not self.process

    def as_bytes(self) -> bytes:
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)}).encode("ascii")

    @classmethod
    def from_bytes(cls, text: bytes) -> "Order":
        values = json.loads(text)
        return cls(**{**values, "task": Task(values["task"])})
