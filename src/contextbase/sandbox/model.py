"""What a sandbox is made from, what runs in it, and how that ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final
from uuid import UUID

from contextbase.errors import InvalidInput, TooLarge
from contextbase.ids import ContentHash
from contextbase.limits import Limit, ResourceLimits
from contextbase.vocabulary import Network, OutputStream, SandboxState

__all__ = [
    "HOME",
    "PROGRAMS",
    "SANDBOX_LIMITS",
    "WORKSPACE",
    "Command",
    "CommandOutcome",
    "Network",
    "Output",
    "OutputStream",
    "SandboxId",
    "SandboxInfo",
    "SandboxSpec",
    "SandboxState",
    "SandboxStats",
    "StorageProof",
    "TerminalSize",
]

WORKSPACE: Final = PurePosixPath("/workspace")
HOME: Final = PurePosixPath("/home/agent")
PROGRAMS: Final = PurePosixPath("/opt")
"""Where folders of this machine are shown to read only."""

_LONGEST_PIECE: Final = (128 << 10) - 1  # bytes of an argument or a variable, as Linux has it
_MOST_TOGETHER: Final = 1 << 20  # Linux takes 2 MB; the sandbox's own variables and arguments are among them
_MOST_READ_ONLY: Final = 8
_PIECE_EXTRA: Final = 9  # its end, and the address of it

SANDBOX_LIMITS: Final = ResourceLimits(
    max_memory=2 << 30, max_cpu=100, max_processes=512, max_execution_time=3600, max_output=64 << 20, max_disk=10 << 30
)
"""What an agent's sandbox may use when nobody says otherwise."""


class SandboxId(UUID):
    """A sandbox's own id, given by whoever creates it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxSpec:
    """`folder` is bound at /workspace. Without one the sandbox holds its files itself: they are copied in and out,
    and it is only removed against a proof that they are stored elsewhere (drivers may not offer this)."""

    id: SandboxId
    folder: Path | None
    image: str | None = None  # for drivers that have images; None: the driver's own
    is_read_only: bool = False  # the folder cannot be changed from inside
    home: Path | None = None  # bound at /home/agent, and kept when the sandbox is removed; None: in memory
    read_only: tuple[tuple[Path, PurePosixPath], ...] = ()  # folders here, and where below /opt they are
    limits: ResourceLimits = SANDBOX_LIMITS
    network: Network = Network.NONE
    environment: Mapping[str, str] = field(default_factory=dict)  # seen by each command, beside PATH, HOME and the like
    labels: Mapping[str, str] = field(default_factory=dict)  # the caller's own ids, given back by `inspect`

    def __post_init__(self) -> None:
        _check_size(_variables(self.environment))
        if self.home is not None and not self.home.is_absolute():
            raise InvalidInput(f"The home of a sandbox is an absolute path, not {self.home}.")
        targets = [target for _, target in self.read_only]
        if len(set(targets)) < len(targets) or len(targets) > _MOST_READ_ONLY:
            raise InvalidInput(f"A sandbox is shown {_MOST_READ_ONLY} folders at the most, each at a place of its own.")
        for source, target in self.read_only:
            if not source.is_absolute() or PROGRAMS not in target.parents or ".." in target.parts:
                raise InvalidInput(f"A folder is shown from an absolute path and below {PROGRAMS}, not {target}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class TerminalSize:
    rows: int = 24
    columns: int = 80

    def __post_init__(self) -> None:
        if not (0 < self.rows < 10_000 and 0 < self.columns < 10_000):
            raise InvalidInput(f"A terminal cannot have {self.rows} rows and {self.columns} columns.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # over the sandbox's own
    cwd: PurePosixPath = WORKSPACE  # inside; relative to /workspace
    has_input: bool = False  # False: standard input is empty
    timeout: float | None = None  # seconds; never longer than the limits allow
    terminal: TerminalSize | None = None  # a terminal of this size: all its output is STDOUT
    asked: str | tuple[str, ...] | None = None  # what was asked for, if `argv` wraps it; for the audit trail

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise InvalidInput("There is no command to run.")
        pieces = [*self.argv, str(self.cwd), *self.environment, *self.environment.values()]
        _check_size([*self.argv, *_variables(self.environment)])
        if any("\0" in piece for piece in pieces):
            raise InvalidInput("A command, its folder and its environment hold no NUL characters.")
        if any(not name or "=" in name for name in self.environment):
            raise InvalidInput("The name of a variable is not empty and holds no '='.")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidInput(f"A timeout is more than 0 seconds, not {self.timeout}.")


def _variables(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]


def _check_size(pieces: Sequence[str]) -> None:
    """Raise `TooLarge` for what no program can be started with."""
    sizes = [len(piece.encode(errors="surrogatepass")) for piece in pieces]
    if max(sizes, default=0) > _LONGEST_PIECE or sum(sizes) + _PIECE_EXTRA * len(sizes) > _MOST_TOGETHER:
        raise TooLarge(
            f"A text for the shell, an argument or a variable has {_LONGEST_PIECE} bytes at the most, and all of a "
            f"command about {_MOST_TOGETHER >> 20} MB. Put what is longer into a file, or give it as stdin: `sh` runs "
            "what it reads there."
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    stream: OutputStream
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandOutcome:
    """How a command ended. Exactly one of `exit_code` and `signal` is set; `stopped_by` says which limit was the
    reason, if one was."""

    exit_code: int | None
    signal: int | None = None
    stopped_by: Limit | None = None
    forks_refused: bool = False  # it wanted more processes than its limit, and went on without
    leftovers_of: tuple[str, ...] = ()  # ended commands whose processes filled the sandbox, and were ended for that
    slowed_down: bool = False  # it wanted more of the processor than its limit
    seconds: float
    cpu_seconds: float | None = None  # None: the driver cannot tell
    peak_memory: int | None = None  # bytes; None: the driver cannot tell

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.stopped_by is None


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxInfo:
    id: SandboxId
    driver: str
    state: SandboxState
    holds_files: bool  # its files are in it and nowhere else
    labels: Mapping[str, str]
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxStats:
    memory: int  # bytes now
    peak_memory: int | None
    cpu_seconds: float
    processes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageProof:
    """That a sandbox's files are stored: the hash of the archive of /workspace as `copy_out` gave it after the stop.
    Whoever stored that archive's files has it; a driver compares it with what is there before it removes anything."""

    archive: ContentHash
