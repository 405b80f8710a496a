"""What every driver guarantees; tests/contracts/test_sandboxes.py holds them to it."""

from collections.abc import AsyncIterator, Callable
from pathlib import PurePosixPath
from typing import Protocol

from contextbase.sandbox.model import (
    Command,
    CommandOutcome,
    Output,
    SandboxId,
    SandboxInfo,
    SandboxSpec,
    SandboxStats,
    StorageProof,
    TerminalSize,
)

__all__ = ["ByteChannel", "Execution", "SandboxDriver"]


class Execution(Protocol):
    """A command that runs. It ends with its first process; what that leaves running lives until the sandbox stops,
    and what such a stray still writes is not read."""

    def output(self) -> AsyncIterator[Output]:
        """What it writes, as it comes, to the end; one reader. Who reads slowly slows the command down: nothing piles
        up here."""
        ...

    async def write(self, data: bytes) -> None:
        """To its standard input, when the command has one; waits while the command does not read. `Conflict` when it
        has none, or has closed it."""
        ...

    async def end_input(self) -> None:
        """Harmless when it was ended before."""
        ...

    async def resize(self, size: TerminalSize) -> None:
        """`Conflict` when it has no terminal. Harmless after the end."""
        ...

    async def kill(self) -> None:
        """End it at once, with all it started in one-shot use. Harmless after the end."""
        ...

    async def wait(self) -> CommandOutcome:
        """Until it ended; reads what nobody else reads, and throws it away. May be called again."""
        ...

    def when_ended(self, told: Callable[[], object]) -> None:
        """Call this when it has ended, or soon if it has."""
        ...


class ByteChannel(Protocol):
    """Bytes both ways, with a program that listens on a socket inside."""

    async def receive(self) -> bytes:
        """The next bytes; empty at the end."""
        ...

    async def send(self, data: bytes) -> None:
        """Waits while the other side does not read. `Conflict` when it is gone."""
        ...

    async def end_sending(self) -> None:
        """The other side reads the end; what it sends still arrives."""
        ...

    async def close(self) -> None: ...


class SandboxDriver(Protocol):
    """Everything but `create` and `run` raises `NotFound` for an id that is not there. Calls that change the same
    sandbox at the same time are made one after the other. A new driver, after a crash too, knows the sandboxes
    that another one of the same node made."""

    @property
    def name(self) -> str: ...

    async def create(self, spec: SandboxSpec) -> SandboxInfo:
        """Harmless when it was created before. `InvalidInput` when the driver cannot do what the spec asks for;
        `MachineProblem` when this machine cannot."""
        ...

    async def start(self, sandbox_id: SandboxId) -> None:
        """Harmless when it runs."""
        ...

    async def stop(self, sandbox_id: SandboxId) -> None:
        """When this returns none of its processes is there any more. Files stay. Harmless when nothing runs."""
        ...

    async def remove(self, sandbox_id: SandboxId, *, proof: StorageProof | None = None) -> None:
        """Stop it and forget it; the bound folder stays as it is. `Conflict` when it holds files itself and `proof` is
        missing or is of other files than those in it: then it is stopped and kept."""
        ...

    async def inspect(self, sandbox_id: SandboxId) -> SandboxInfo: ...

    async def found(self) -> list[SandboxInfo]:
        """All of this node, oldest first, whoever made them."""
        ...

    async def exec(self, sandbox_id: SandboxId, command: Command) -> Execution:
        """Start a command; `Conflict` unless the sandbox runs. A program that is not there ends with exit code 127, as
        in a shell, and a folder to start in that is not there is `InvalidInput`."""
        ...

    async def run(self, spec: SandboxSpec, command: Command) -> Execution:
        """One command in a sandbox of its own, of which nothing is left when it ended; needs a folder."""
        ...

    async def copy_in(self, sandbox_id: SandboxId, folder: PurePosixPath, archive: AsyncIterator[bytes]) -> None:
        """Unpack a tar stream below a folder inside, as the agent's own files; nothing in it can land outside of that
        folder (`InvalidInput`)."""
        ...

    def copy_out(self, sandbox_id: SandboxId, folder: PurePosixPath) -> AsyncIterator[bytes]:
        """A tar stream of all that is below a folder inside, names relative to it. Of a stopped sandbox it is the same
        bytes each time."""
        ...

    async def stats(self, sandbox_id: SandboxId) -> SandboxStats:
        """`Conflict` unless it runs."""
        ...

    async def connect(self, sandbox_id: SandboxId, socket: PurePosixPath) -> ByteChannel:
        """To a program that listens on this Unix socket inside; needs no network. `Conflict` unless the sandbox runs,
        `Unavailable` when nobody listens there."""
        ...

    async def close(self) -> None:
        """Let go of what this object holds: its executions end, its sandboxes stay as they are."""
        ...
