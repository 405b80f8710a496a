"""The calls of a Docker engine that sandboxes need."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from contextbase.errors import Conflict, MachineProblem, NotFound
from contextbase.sandbox.docker.connection import EngineConnection, Hijacked
from contextbase.workspaces.model import Owner

__all__ = ["Engine"]

_NEVER_TYPED: Final = ",".join(["ctrl-_"] * 16)  # what would detach a terminal; the default is ctrl-p,ctrl-q


class Engine:
    def __init__(self, address: str, *, timeout: float) -> None:
        self._connection = EngineConnection(address, timeout=timeout)

    async def close(self) -> None:
        await self._connection.close()

    async def info(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self._connection.call("GET", "info", about="its own state")
        return found

    async def create(self, name: str, config: Mapping[str, Any]) -> bool:
        """False when a container of this name is there already."""
        image = config["Image"]
        try:
            await self._connection.call(
                "POST", "containers/create", query={"name": name}, body=config, about=f"the image {image}"
            )
        except Conflict:
            return False
        except NotFound as error:
            raise MachineProblem(
                f"The engine has no image {image!r}. Build it: docker build -t {image} images/agent"
            ) from error
        return True

    async def start(self, name: str) -> None:
        await self._container("POST", name, "/start")

    async def stop(self, name: str, *, patience: int) -> None:
        await self._container("POST", name, "/stop", {"t": str(patience)})

    async def remove(self, name: str, *, even_running: bool = True) -> None:
        """Harmless when it is gone, or somebody else removes it. `Conflict` when it runs and must not."""
        try:
            with suppress(NotFound):
                await self._container("DELETE", name, "", {"force": str(int(even_running)), "v": "1"})
        except Conflict as error:
            if "in progress" not in error.message:
                raise

    async def inspect(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self._container("GET", name, "/json")
        return found

    async def size(self, name: str) -> int:
        """Bytes in the container's writable layer. The engine looks at every file of it."""
        return int((await self._container("GET", name, "/json", {"size": "1"}))["SizeRw"])

    async def containers(self, label: str) -> Sequence[Mapping[str, Any]]:
        query = {"all": "1", "filters": json.dumps({"label": [label]})}
        found: Sequence[Mapping[str, Any]] = await self._connection.call(
            "GET", "containers/json", query=query, about="its containers"
        )
        return found

    async def stats(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self._container("GET", name, "/stats", {"stream": "0", "one-shot": "1"})
        return found

    async def put_archive(self, name: str, archive: bytes) -> None:
        """Unpack it as root from the container's root folder: only for what we made, before anything runs there."""
        await self._container("PUT", name, "/archive", {"path": "/"}, archive)

    def archive(self, name: str, path: str) -> AsyncGenerator[bytes, None]:
        """What is below the path, as the engine's own tar stream; no other call to this container gets through."""
        return self._connection.stream(f"containers/{name}/archive", query={"path": path}, about=f"{path} in {name}")

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
        order = {
            "Cmd": argv,
            "User": f"{owner.uid}:{owner.gid}",
            "AttachStdin": has_input,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": has_terminal,
            "Env": [f"{variable}={value}" for variable, value in environment.items()],
            "WorkingDir": "/",
            "DetachKeys": _NEVER_TYPED,
        }
        exec_id = (await self._container("POST", name, "/exec", body=order))["Id"]
        start = {"Detach": False, "Tty": has_terminal}
        return exec_id, await self._connection.hijack(f"exec/{exec_id}/start", body=start, about=name)

    async def exit_code(self, exec_id: str) -> int | None:
        """None while it runs."""
        state = await self._connection.call("GET", f"exec/{exec_id}/json", about="the command")
        return None if state["Running"] else state["ExitCode"]

    async def resize(self, exec_id: str, *, rows: int, columns: int) -> None:
        query = {"h": str(rows), "w": str(columns)}
        await self._connection.call("POST", f"exec/{exec_id}/resize", query=query, about="the command")

    async def _container(
        self, method: str, name: str, what: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> Any:
        return await self._connection.call(method, f"containers/{name}{what}", query=query, body=body, about=name)
