"""The server's side of a sandbox's channel: calls and events of the executor, and what is opened inside."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, Self

from contextbase.channel.errors import ChannelClosed, ProtocolViolation, StreamCut
from contextbase.channel.greeting import Greeting, common_version, received_greeting
from contextbase.channel.multiplexer import SERVER, Multiplexer
from contextbase.channel.stream import ChannelStream
from contextbase.errors import (
    Conflict,
    ContextbaseError,
    CursorOutdated,
    InvalidInput,
    NotFound,
    TooLarge,
    Unavailable,
)
from contextbase.sandbox.model import SandboxId, TerminalSize
from contextbase.sandbox.ports import ByteChannel, SandboxDriver
from contextbase.sessions.executor_start import SOCKETS, start_executor

__all__ = ["ExecutorAnswer", "ExecutorLink", "StreamHandler"]

_log = logging.getLogger(__name__)

StreamHandler = Callable[[ChannelStream], Awaitable[None]]

_PATIENCE: Final = 60.0  # seconds that a call may take, with attaching again
_GREETING_SECONDS: Final = 15.0
_LONGEST_HEAD: Final = 16 << 10
_LONGEST_BODY: Final = 16 << 20
_LONGEST_EVENT: Final = 4 << 20
_PAUSES: Final = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds before attaching again
_STEADY: Final = 10.0  # a channel that held for as many seconds was a good one
_ERRORS: Final = {400: InvalidInput, 404: NotFound, 409: Conflict, 413: TooLarge}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorAnswer:
    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """Of something inside: its shape is not to be trusted."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise Unavailable("The executor's answer is not what it should be.")
        return value

    def checked(self) -> dict[str, Any]:
        """The body of a good answer; the error that a bad one stands for."""
        values = self.json()
        if self.status < 400:
            return values
        kind = _ERRORS.get(self.status, Unavailable)
        raise kind(str(values.get("message", "The executor refused it."))[:1000], executor_code=values.get("code"))


class ExecutorLink:
    """Attached to one sandbox, and again whenever the channel breaks; starts the executor anew when it is gone. Each
    stream opened inside goes to the handler of its kind; there is nothing inside that says whose it is but the sandbox
    it came from. Every call can be made twice, and is, when the channel breaks in the middle of it."""

    def __init__(
        self,
        driver: SandboxDriver,
        sandbox_id: SandboxId,
        *,
        handlers: Mapping[str, StreamHandler],
        python: str = "python3",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._driver = driver
        self._sandbox_id = sandbox_id
        self._handlers = dict(handlers)
        self._python = python
        self._environment = dict(environment or {})
        self._channel: Multiplexer | None = None
        self._changed = asyncio.Event()
        self._failure: ContextbaseError | None = None
        self._about: Mapping[str, Any] = {}
        self._socket: PurePosixPath | None = None
        self._keeping = asyncio.create_task(self._keep())

    @classmethod
    async def started(
        cls,
        driver: SandboxDriver,
        sandbox_id: SandboxId,
        *,
        handlers: Mapping[str, StreamHandler],
        python: str = "python3",
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """In a sandbox that runs and has a loopback. Returns when it is attached; raises what is in the way."""
        link = cls(driver, sandbox_id, handlers=handlers, python=python, environment=environment)
        try:
            await link._attached(_PATIENCE)
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def is_over(self) -> bool:
        """Whether it was closed, or its sandbox is gone: another one must be started."""
        return self._failure is not None

    @property
    def about(self) -> Mapping[str, Any]:
        """What the executor said of itself when it was last attached."""
        return self._about

    async def call(
        self, method: str, path: str, body: Mapping[str, Any] | bytes = b"", *, patience: float = _PATIENCE
    ) -> ExecutorAnswer:
        """`Unavailable` when it cannot be reached for as long as that."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        deadline = time.monotonic() + patience
        while True:
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    head, stream = await self._opened(method, path, content, patience)
                    try:
                        answer = await stream.read_all(_LONGEST_BODY)
                    finally:
                        await stream.cut()
                    return ExecutorAnswer(status=_status(head), body=answer)
            except TimeoutError:
                raise Unavailable(f"The executor of sandbox {self._sandbox_id} does not answer.") from None
            except (ChannelClosed, StreamCut):
                await asyncio.sleep(_PAUSES[0])  # it attaches again meanwhile
            except ProtocolViolation:
                raise Unavailable("The executor's answer is not what it should be.") from None

    async def upload(self, path: str, pieces: AsyncIterator[bytes]) -> ExecutorAnswer:
        """A POST whose body is too large to hold. `Unavailable` when the channel breaks in the middle of it."""
        try:
            head, stream = await self._opened("POST", path, pieces, _PATIENCE)
            try:
                return ExecutorAnswer(status=_status(head), body=await stream.read_all(_LONGEST_BODY))
            finally:
                await stream.cut()
        except (ConnectionError, ProtocolViolation) as error:
            raise Unavailable("The executor was cut off in the middle of a call.") from error

    async def download(self, path: str, *, method: str = "GET") -> AsyncGenerator[bytes, None]:
        """The body of an answer, as it comes."""
        try:
            head, stream = await self._opened(method, path, b"", _PATIENCE)
            try:
                if _status(head) >= 400:
                    body = await stream.read_all(_LONGEST_BODY)
                    ExecutorAnswer(status=_status(head), body=body).checked()
                while piece := await stream.read():
                    yield piece
            finally:
                await stream.cut()
        except ConnectionError as error:
            raise Unavailable("The executor was cut off in the middle of its answer.") from error

    async def events(self, after: int = 0) -> AsyncGenerator[dict[str, Any], None]:
        """Each event after this number once and in order, and then those that come, until the link is closed or the
        sandbox is gone. `CursorOutdated` when the journal is not the one that the number is of."""
        while True:
            try:
                head, stream = await self._opened("GET", f"/events?after={after}", b"", _PATIENCE)
                try:
                    if _status(head) == 409:
                        raise CursorOutdated(f"The executor's journal does not have event {after}.")
                    async for event in _lines(stream):
                        if event.get("n") != after + 1:
                            raise Unavailable(f"The executor's event {event.get('n')} is not the one after {after}.")
                        after += 1
                        yield event
                finally:
                    await stream.cut()
            except (ChannelClosed, StreamCut):
                pass
            except ProtocolViolation as error:
                raise Unavailable("The executor's events are not what they should be.") from error
            await asyncio.sleep(_PAUSES[0])

    async def terminal(self, size: TerminalSize, *, name: str) -> ChannelStream:
        """A shell inside: what is typed goes in, what it shows comes out, until one side ends. `name` is for
        `POST /terminals/{name}/size`."""
        channel = await self._attached(_PATIENCE)
        about = {"kind": "terminal", "name": name, "rows": size.rows, "columns": size.columns}
        try:
            return await channel.open(about)
        except ChannelClosed:
            raise Unavailable("The executor cannot be reached now.") from None

    async def close(self) -> None:
        """Let go of it; the executor and its run go on."""
        self._failure = self._failure or Unavailable("The link to this sandbox was closed.")
        self._changed.set()
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        if self._channel is not None:
            await self._channel.handlers_ended()

    async def _opened(
        self, method: str, path: str, body: bytes | AsyncIterator[bytes], patience: float
    ) -> tuple[Mapping[str, Any], ChannelStream]:
        channel = await self._attached(patience)
        stream = await channel.open({"kind": "call", "method": method, "path": path})
        try:
            if isinstance(body, bytes):
                await stream.write(body)
            else:
                async for piece in body:
                    await stream.write(piece)
            await stream.end()
            return _head(await stream.read_line(_LONGEST_HEAD)), stream
        except BaseException:
            await stream.cut()
            raise

    async def _attached(self, patience: float) -> Multiplexer:
        try:
            async with asyncio.timeout(patience):
                while True:
                    if self._failure is not None:
                        raise self._failure
                    if self._channel is not None and not self._channel.is_over:
                        return self._channel
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Unavailable(f"The executor of sandbox {self._sandbox_id} cannot be reached.") from None

    async def _keep(self) -> None:
        """Attached, until the link is closed or the sandbox is gone."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self._attach_once()
            except (Unavailable, OSError) as error:
                _log.warning(
                    "an executor cannot be reached", extra={"sandbox": str(self._sandbox_id), "why": str(error)}
                )
            except ContextbaseError as error:
                self._failure = error
                self._changed.set()
                return
            failures = 0 if time.monotonic() - began > _STEADY else failures + 1
            await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])

    async def _attach_once(self) -> None:
        connection = await self._connected()
        try:
            receive, send = connection.receive, _as_connection_errors(connection.send)
            ours = Greeting(about={"side": "server"})
            async with asyncio.timeout(_GREETING_SECONDS):
                await send(ours.encoded())
                theirs, rest = await received_greeting(receive)
            common_version(ours, theirs)
            channel = Multiplexer(receive=receive, send=send, opened=self._handle, first=SERVER, rest=rest)
            self._about, self._channel = theirs.about, channel
            self._changed.set()
            await channel.run()
        finally:
            await connection.close()

    async def _connected(self) -> ByteChannel:
        for is_started in (False, True):
            if is_started:
                await start_executor(self._driver, self._sandbox_id, python=self._python, environment=self._environment)
            for socket in SOCKETS if self._socket is None else (self._socket,):
                with contextlib.suppress(Unavailable):
                    connection = await self._driver.connect(self._sandbox_id, socket)
                    self._socket = socket
                    return connection
            self._socket = None
        raise Unavailable(f"The executor of sandbox {self._sandbox_id} does not listen.")

    async def _handle(self, stream: ChannelStream) -> None:
        handler = self._handlers.get(str(stream.about.get("kind")))
        if handler is None:
            await stream.cut()
        else:
            await handler(stream)


def _as_connection_errors(send: Callable[[bytes], Awaitable[None]]) -> Callable[[bytes], Awaitable[None]]:
    async def sent(data: bytes) -> None:
        try:
            await send(data)
        except Conflict as error:
            raise ChannelClosed(error.message) from error

    return sent


def _head(line: bytes) -> Mapping[str, Any]:
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict) or type(head.get("status")) is not int:
        raise ProtocolViolation("An answer begins with its status.")
    return head


def _status(head: Mapping[str, Any]) -> int:
    return int(head["status"])


async def _lines(stream: ChannelStream) -> AsyncIterator[dict[str, Any]]:
    buffer = bytearray()
    while piece := await stream.read():
        buffer += piece
        *lines, rest = bytes(buffer).split(b"\n") if b"\n" in piece else (bytes(buffer),)
        buffer = bytearray(rest)
        if len(buffer) > _LONGEST_EVENT:
            raise ProtocolViolation("An event is too long.")
        for line in lines:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            if not isinstance(event, dict) or type(event.get("n")) is not int:
                raise ProtocolViolation("An event is a JSON object with a number.")
            yield event
