"""HTTP to a Docker engine over its Unix socket: every answer has a time limit, every failure is one of our errors."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import httpx

from contextbase.errors import Conflict, InvalidInput, MachineProblem, NotFound, Unavailable

__all__ = ["DEFAULT_ADDRESS", "EngineConnection", "Hijacked"]

DEFAULT_ADDRESS: Final = "unix:///var/run/docker.sock"
_SCHEME: Final = "unix://"


class Hijacked:
    """The connection of a running exec: raw bytes both ways, each direction with its own end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def end_input(self) -> None:
        with suppress(OSError):  # it is gone
            if self.writer.can_write_eof() and not self.writer.is_closing():
                self.writer.write_eof()

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


class EngineConnection:
    """`about` names the thing a call is about, for the message when it fails."""

    def __init__(self, address: str, *, timeout: float) -> None:
        if not address.startswith(f"{_SCHEME}/"):
            raise InvalidInput(f"The engine's address is {_SCHEME}/path/of/its.sock, not {address!r}.")
        self._address = address
        self._socket = address.removeprefix(_SCHEME)
        self._timeout = timeout
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=self._socket, verify=False),  # no TLS there
            base_url="http://docker",
            headers={"Accept-Encoding": "identity"},  # the engine would compress archives that stay on this machine
            timeout=timeout,
            trust_env=False,  # a proxy for the web must not get in between
        )
        self._version: str | None = None

    async def close(self) -> None:
        await self._client.aclose()

    async def call(
        self, method: str, path: str, *, about: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> Any:
        """The answer's JSON; None when it has no body. A body of bytes goes as it is, anything else as JSON."""
        with self._errors(about):
            async with asyncio.timeout(self._timeout), self._asked(method, path, query, body) as answer:
                content = await answer.aread()
                return json.loads(content) if content else None

    async def stream(self, path: str, *, about: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """The pieces of a body of any length; the time limit is for each piece."""
        with self._errors(about):
            async with self._asked("GET", path, query, None) as answer:
                async for piece in answer.aiter_bytes():
                    yield piece

    async def hijack(self, path: str, *, about: str, body: Mapping[str, Any]) -> Hijacked:
        """Ask for a connection of raw bytes. It is not one of httpx's, which cannot end their input and still read."""
        with self._errors(about):
            async with asyncio.timeout(self._timeout):
                url = await self._versioned(path)
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    await _upgrade(reader, writer, url, json.dumps(body).encode())
                except BaseException:
                    writer.close()
                    raise
                return Hijacked(reader, writer)

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Any
    ) -> AsyncIterator[httpx.Response]:
        url = await self._versioned(path)
        sent: dict[str, Any] = {"content": body} if body is None or isinstance(body, bytes) else {"json": body}
        async with self._client.stream(method, url, params=query, **sent) as answer:
            if answer.status_code >= 400:
                raise _Refusal(answer.status_code, _reason(await answer.aread()))
            yield answer

    async def _versioned(self, path: str) -> str:
        """The path in the newest version of the API that this engine speaks."""
        if self._version is None:
            answer = await self._client.get("/_ping")
            self._version = answer.headers.get("Api-Version")
            if self._version is None:
                raise _Refusal(answer.status_code, _reason(answer.content))
        return f"/v{self._version}/{path}"

    @contextmanager
    def _errors(self, about: str) -> Iterator[None]:
        """The engine's refusals as our own errors."""
        try:
            yield
        except _Refusal as error:
            raise self._explained(error.status, error.reason, about) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Unavailable(f"The Docker engine at {self._address} did not answer about {about} in time.") from error
        except (httpx.TransportError, OSError, EOFError) as error:
            if "Permission denied" in str(error):
                raise self._forbidden() from error
            raise Unavailable(
                f"No Docker engine answers at {self._address}. Is it running? (systemctl start docker)"
            ) from error

    def _explained(self, status: int, reason: str, about: str) -> Exception:
        match status:
            case 400:
                return InvalidInput(f"The Docker engine cannot do this for {about}: {reason}")
            case 403:
                return self._forbidden()
            case 404:
                return NotFound(f"The Docker engine does not know {about}: {reason}")
            case 409:
                return Conflict(f"The Docker engine refuses this for {about}: {reason}")
        return Unavailable(f"The Docker engine failed at {about}: {reason}")

    def _forbidden(self) -> MachineProblem:
        return MachineProblem(
            f"This account may not use the Docker engine at {self._address}: it is not in the socket's group."
        )


class _Refusal(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


async def _upgrade(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: str, body: bytes) -> None:
    writer.write(
        f"POST {url} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    code = int(status.split(" ", 2)[1])
    if code not in (101, 200):
        named = dict(header.lower().split(": ", 1) for header in headers if ": " in header)
        raise _Refusal(code, _reason(await reader.readexactly(int(named.get("content-length", 0)))))


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:500] or "no reason given"
