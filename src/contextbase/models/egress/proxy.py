"""An HTTP proxy on a stream of a sandbox: CONNECT, and requests that name their whole URL. The server dials."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol
from urllib.parse import urlsplit

import h11

from contextbase.errors import ContextbaseError, Forbidden
from contextbase.ids import ProjectId
from contextbase.models.addresses import AddressChecker, ResolvedAddress
from contextbase.models.egress.policy import AllowedHosts
from contextbase.models.http_stream import ByteStream

__all__ = ["EgressLimits", "EgressOutcome", "EgressProxy", "EgressReport", "HostSource"]

_PIECE: Final = 65_536
_PER_CONNECTION: Final = frozenset({b"connection", b"host", b"keep-alive", b"te", b"upgrade"})
_REASONS: Final = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}


class EgressOutcome(StrEnum):
    CONNECTED = "connected"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, kw_only=True, slots=True)
class EgressReport:
    """A host that something in a sandbox wanted to reach."""

    host: str
    port: int
    outcome: EgressOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class EgressLimits:
    """Of one connection."""

    head_bytes: int = 32_768
    head_seconds: float = 60.0
    connect_seconds: float = 15.0
    idle_seconds: float = 300.0
    all_seconds: float = 6 * 3600.0
    all_bytes: int = 20 * 1024**3


class HostSource(Protocol):
    async def allowed(self, project_id: ProjectId) -> AllowedHosts:
        """The hosts that sandboxes of a project may reach."""
        ...


@dataclass(frozen=True, slots=True)
class _Target:
    host: str
    port: int
    head: bytes  # to send first; empty for CONNECT
    rest: bytes  # that came with the client's head


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EgressProxy:
    def __init__(
        self, *, hosts: HostSource, checker: AddressChecker | None = None, limits: EgressLimits | None = None
    ) -> None:
        self._hosts = hosts
        self._checker = checker or AddressChecker()
        self._limits = limits or EgressLimits()

    async def serve(
        self, stream: ByteStream, project_id: ProjectId, on_host: Callable[[EgressReport], Awaitable[None]]
    ) -> None:
        """One connection, until it ends. Every host that is asked for is reported, also those that are refused."""
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                target = await self._target(stream)
            reader, writer = await self._dialled(target, project_id, on_host)
        except _Refused as refused:
            await _answer(stream, refused.status, str(refused))
            return
        except OSError:  # it went away, or took too long
            await _ended(stream)
            return
        try:
            async with asyncio.timeout(self._limits.all_seconds):
                await self._joined(stream, reader, writer, target)
        except OSError:
            pass
        finally:
            writer.transport.abort()
            await _ended(stream)

    async def _target(self, stream: ByteStream) -> _Target:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes)
        try:
            while (event := http.next_event()) is h11.NEED_DATA:
                piece = await stream.read()
                if not piece:
                    raise ConnectionResetError
                http.receive_data(piece)
        except h11.RemoteProtocolError:
            raise _Refused(400, "This is not a request to a proxy.") from None
        if not isinstance(event, h11.Request):
            raise ConnectionResetError
        return _parsed(event, http.trailing_data[0])

    async def _dialled(
        self, target: _Target, project_id: ProjectId, on_host: Callable[[EgressReport], Awaitable[None]]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async def report(outcome: EgressOutcome) -> None:
            await on_host(EgressReport(host=target.host, port=target.port, outcome=outcome))

        allowed = await self._hosts.allowed(project_id)
        if not allowed.allows(target.host, target.port):
            await report(EgressOutcome.REFUSED)
            raise _Refused(
                403,
                f"{target.host}:{target.port} is not among the hosts that this project's sandboxes may reach. An "
                "administrator can allow it: contextbase project egress.",
            )
        try:
            place = await self._checker.resolve(target.host, target.port)
            connection = await self._connected(place)
        except Forbidden as error:
            await report(EgressOutcome.REFUSED)
            raise _Refused(403, error.message) from None
        except (OSError, ContextbaseError):
            await report(EgressOutcome.UNREACHABLE)
            raise _Refused(502, f"{target.host}:{target.port} cannot be reached.") from None
        await report(EgressOutcome.CONNECTED)
        return connection

    async def _connected(self, place: ResolvedAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the address that was checked: a second look-up of the name could give another."""
        async with asyncio.timeout(self._limits.connect_seconds):
            return await asyncio.open_connection(place.host, place.port)

    async def _joined(
        self, stream: ByteStream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: _Target
    ) -> None:
        if not target.head:
            await stream.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        writer.write(target.head + target.rest)
        moved, loop = 0, asyncio.get_running_loop()
        async with asyncio.timeout(self._limits.idle_seconds) as idle:

            def count(piece: bytes) -> None:
                nonlocal moved
                moved += len(piece)
                if moved > self._limits.all_bytes:
                    raise ConnectionAbortedError
                idle.reschedule(loop.time() + self._limits.idle_seconds)

            async def out() -> None:
                while piece := await stream.read():
                    count(piece)
                    writer.write(piece)
                    await writer.drain()
                writer.write_eof()

            async def back() -> None:
                while piece := await reader.read(_PIECE):
                    count(piece)
                    await stream.write(piece)

            outwards, inwards = asyncio.create_task(out()), asyncio.create_task(back())
            try:
                # When the host has said all, what the sandbox still says has no reader.
                await asyncio.wait({outwards, inwards}, return_when=asyncio.FIRST_COMPLETED)
                if not inwards.done() and outwards.exception() is None:
                    await inwards
            finally:
                for task in (outwards, inwards):
                    task.cancel()
                await asyncio.gather(outwards, inwards, return_exceptions=True)


def _parsed(request: h11.Request, rest: bytes) -> _Target:
    is_tunnel = request.method == b"CONNECT"
    try:
        target = request.target.decode("ascii")
        parts = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    is_plain = host is not None and parts.username is None
    if not is_plain or not (port and not parts.path if is_tunnel else parts.scheme == "http"):
        raise _Refused(400, "A proxy takes CONNECT host:port, or a request for an http:// URL.")
    if is_tunnel:
        return _Target(str(host), int(port or 0), b"", rest)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [
        (name, value)
        for name, value in request.headers
        if name not in _PER_CONNECTION and not name.startswith(b"proxy-")
    ]
    lines = [b"%s %s HTTP/1.1" % (request.method, path.encode("ascii")), b"host: " + parts.netloc.encode("ascii")]
    lines += [b"%s: %s" % header for header in kept]
    return _Target(
        str(host), 80 if port is None else port, b"\r\n".join([*lines, b"connection: close", b"", b""]), rest
    )


async def _answer(stream: ByteStream, status: int, message: str) -> None:
    body = f"{message}\n".encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    with contextlib.suppress(OSError):
        async with asyncio.timeout(10):
            await stream.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    await _ended(stream)


async def _ended(stream: ByteStream) -> None:
    with contextlib.suppress(OSError):
        async with asyncio.timeout(10):
            await stream.end()
