"""A Docker engine on this machine, asked over its Unix socket; every answer has a time limit."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiodocker
import aiohttp
from aiodocker.containers import DockerContainer

from contextbase.errors import Conflict, InvalidInput, MachineProblem, NotFound, Unavailable
from contextbase.workspaces.model import Owner

__all__ = ["DEFAULT_ADDRESS", "Engine", "Hijacked"]

DEFAULT_ADDRESS: Final = "unix:///var/run/docker.sock"
_SCHEME: Final = "unix://"
_CANNOT_CONNECT: Final = 900  # aiodocker's status for it
_FORBIDDEN: Final = 403
_NEVER_TYPED: Final = ",".join(["ctrl-_"] * 16)  # what would detach a terminal; the default is ctrl-p,ctrl-q


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


class Engine:
    def __init__(self, address: str, *, timeout: float) -> None:
        if not address.startswith(f"{_SCHEME}/"):
            raise InvalidInput(f"The engine's address is {_SCHEME}/path/of/its.sock, not {address!r}.")
        self.address = address
        self._socket = Path(address.removeprefix(_SCHEME))
        self._timeout = timeout
        self._client: aiodocker.Docker | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def info(self) -> Mapping[str, Any]:
        with self._errors("the engine"):
            return await self._docker().system.info()

    async def create(self, name: str, config: Mapping[str, Any]) -> bool:
        """False when a container of this name is there already."""
        try:
            with self._errors(f"the image {config['Image']}"):
                await self._docker().containers.create(dict(config), name=name)
        except Conflict:
            return False
        except NotFound as error:
            raise MachineProblem(
                f"The engine has no image {config['Image']!r}. Build it: docker build -t {config['Image']} images/agent"
            ) from error
        return True

    async def start(self, name: str) -> None:
        with self._errors(name):
            await self._container(name).start()

    async def stop(self, name: str, *, patience: int) -> None:
        with self._errors(name):
            await self._container(name).stop(t=patience)

    async def remove(self, name: str, *, even_running: bool = True) -> None:
        """Harmless when it is gone, or somebody else removes it. `Conflict` when it runs and must not."""
        try:
            with suppress(NotFound), self._errors(name):
                await self._container(name).delete(force=even_running, v=True)
        except Conflict as error:
            if "in progress" not in error.message:
                raise

    async def inspect(self, name: str) -> Mapping[str, Any]:
        with self._errors(name):
            return await self._container(name).show()

    async def size(self, name: str) -> int:
        """Bytes in the container's writable layer. The engine looks at every file of it."""
        with self._errors(name):
            return int((await self._container(name).show(size="1"))["SizeRw"])

    async def containers(self, label: str) -> list[DockerContainer]:
        with self._errors("the engine"):
            return await self._docker().containers.list(all=True, filters=json.dumps({"label": [label]}))

    async def stats(self, name: str) -> Mapping[str, Any]:
        with self._errors(name):
            query = {"stream": "0", "one-shot": "1"}
            async with self._asked("GET", f"containers/{name}/stats", params=query) as answer:
                found: Mapping[str, Any] = await answer.json()
                return found

    async def put_archive(self, name: str, archive: bytes) -> None:
        """Unpack it as root from the container's root folder: only for what we made, before anything runs there."""
        with self._errors(name):
            query = {"path": "/"}
            async with self._asked("PUT", f"containers/{name}/archive", params=query, data=archive):
                pass

    async def archive(self, name: str, path: str) -> AsyncGenerator[bytes, None]:
        """What is below the path, as the engine's own tar stream; no other call to this container gets through."""
        with self._errors(f"{path} in {name}"):
            async with self._asked("GET", f"containers/{name}/archive", params={"path": path}) as answer:
                async for piece in answer.content.iter_any():
                    yield piece

    async def execute(
        self,
        name: str,
        argv: list[str],
        *,
        owner: Owner,
        environment: Mapping[str, str],
        has_input: bool,
        has_terminal: bool,
    ) -> tuple[str, Hijacked]:
        """Start a command; its id and connection."""
        with self._errors(name):
            prepared = await self._container(name).exec(
                argv,
                user=f"{owner.uid}:{owner.gid}",
                stdin=has_input,
                tty=has_terminal,
                environment=environment,
                workdir="/",
                detach_keys=_NEVER_TYPED,
            )
            async with asyncio.timeout(self._timeout):
                return prepared.id, await self._hijacked(prepared.id, {"Detach": False, "Tty": has_terminal})

    async def exit_code(self, exec_id: str) -> int | None:
        """None while it runs."""
        with self._errors("the command"):
            state = await self._docker().containers.exec(exec_id).inspect()
            return None if state["Running"] else state["ExitCode"]

    async def resize(self, exec_id: str, *, rows: int, columns: int) -> None:
        with self._errors("the command"):
            await self._docker().containers.exec(exec_id).resize(h=rows, w=columns)

    async def _hijacked(self, exec_id: str, order: Mapping[str, Any]) -> Hijacked:
        # Our own connection: aiodocker's stream cannot end its input and still read.
        reader, writer = await asyncio.open_unix_connection(str(self._socket))
        try:
            body = json.dumps(order).encode()
            writer.write(
                f"POST /{self._docker().api_version}/exec/{exec_id}/start HTTP/1.1\r\nHost: docker\r\n"
                f"Content-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            code = int(status.split(" ", 2)[1])
            if code not in (101, 200):
                raise aiodocker.DockerError(code, await _reason(reader, headers))  # noqa: TRY301 - closes, as all do
        except BaseException:
            writer.close()
            raise
        return Hijacked(reader, writer)

    @asynccontextmanager
    async def _asked(self, method: str, path: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """For what aiodocker has no call for."""
        docker = self._docker()
        if docker.api_version == "auto":
            await docker.version()
        timeout = aiohttp.ClientTimeout(sock_connect=self._timeout, sock_read=self._timeout)
        url = f"{docker.docker_host}/{docker.api_version}/{path}"
        async with docker.session.request(method, url, timeout=timeout, **options) as answer:
            if answer.status >= 400:
                raise aiodocker.DockerError(answer.status, str((await answer.json()).get("message", "")))
            yield answer

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """The engine's refusals as our own errors."""
        try:
            yield
        except aiodocker.DockerError as error:
            raise self._explained(error.status, error.message, what) from error
        except PermissionError as error:
            raise self._explained(_FORBIDDEN, str(error), what) from error
        except TimeoutError as error:
            raise Unavailable(f"The Docker engine at {self.address} did not answer about {what} in time.") from error
        except (aiohttp.ClientError, OSError, EOFError) as error:
            raise self._explained(_CANNOT_CONNECT, str(error), what) from error

    def _explained(self, status: int, message: str, what: str) -> Exception:
        if status == _CANNOT_CONNECT and "Permission denied" in message:
            status = _FORBIDDEN
        match status:
            case 404:
                return NotFound(f"The Docker engine knows nothing of {what}: {message}")
            case 409:
                return Conflict(f"The Docker engine refuses it for {what}: {message}")
            case 400:
                return InvalidInput(f"The Docker engine cannot do this for {what}: {message}")
            case _ if status == _FORBIDDEN:
                return MachineProblem(
                    f"We may not use the Docker engine at {self.address}: this account is not in its socket's group."
                )
            case _ if status == _CANNOT_CONNECT:
                return Unavailable(
                    f"No Docker engine answers at {self.address}. Is it running? (systemctl start docker)"
                )
        return Unavailable(f"The Docker engine failed at {what}: {message}")

    def _container(self, name: str) -> DockerContainer:
        return self._docker().containers.container(name)

    def _docker(self) -> aiodocker.Docker:
        if self._client is None:
            timeout = aiohttp.ClientTimeout(total=self._timeout)
            self._client = aiodocker.Docker(self.address, timeout=timeout)
        return self._client


async def _reason(reader: asyncio.StreamReader, headers: list[str]) -> str:
    named = dict(header.lower().split(": ", 1) for header in headers if ": " in header)
    body = await reader.readexactly(int(named.get("content-length", 0)))
    return str(json.loads(body)["message"]) if body else "no reason given"
