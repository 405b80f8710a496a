"""A sandbox with an executor in it, attached, whose model traffic goes to a scripted model."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, model_context, scripted_gateway

from contextbase.channel.stream import ChannelStream
from contextbase.limits import ResourceLimits
from contextbase.models.http_stream import serve
from contextbase.models.ports import UsageLedger
from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.docker import DockerDriver
from contextbase.sandbox.model import Network, SandboxSpec
from contextbase.sandbox.ports import SandboxDriver
from contextbase.sessions.executor_link import ExecutorLink, StreamHandler
from contextbase.workspaces.model import Owner

__all__ = ["BOUND", "ROOMY", "Attached", "attached", "driver_of", "driver_values", "gateway_handler", "run_body"]

ROOMY = ResourceLimits(
    max_memory=2 << 30, max_cpu=None, max_processes=400, max_execution_time=600, max_output=None, max_disk=None
)
BOUND = 120
"""Seconds that nothing in these tests takes, unless it hangs."""


def gateway_handler(model: RecordedModel, ledger: UsageLedger | None = None) -> StreamHandler:
    """The gateway, with the scripted model behind it."""
    gateway = scripted_gateway(model, ledger)
    context = model_context(main_model="scripted")

    async def handle(stream: ChannelStream) -> None:
        await serve(stream, gateway, {"current": lambda: context})

    return handle


def run_body(prompt: str = "Do it.", **values: Any) -> dict[str, Any]:
    run = {"run_id": str(uuid4()), "attempt": 1, "provider": "scripted", "prompt": prompt, "model": "claude-sonnet-4-5"}
    return run | values


def driver_values(driver: Any) -> dict[str, Any]:
    """For a worker in another process that wants a driver of the same node: see `driver_of`."""
    common = {"node": driver._node, "uid": driver._owner.uid, "gid": driver._owner.gid}
    if isinstance(driver, DockerDriver):
        return common | {"kind": "docker", "image": driver._image, "address": driver._engine._connection._address}
    return common | {"kind": "bubblewrap", "root": str(driver._root)}


def driver_of(values: Mapping[str, Any]) -> SandboxDriver:
    owner = Owner(uid=values["uid"], gid=values["gid"])
    if values["kind"] == "docker":
        return DockerDriver(node=values["node"], owner=owner, image=values["image"], address=values["address"])
    own = Path(sys.base_prefix)
    extra = () if own.is_relative_to("/usr") else (own,)
    return BubblewrapDriver(Path(values["root"]), owner=owner, node=values["node"], extra_read_only=extra)


@dataclass(kw_only=True)
class Attached:
    link: ExecutorLink
    driver: SandboxDriver
    spec: SandboxSpec

    async def run(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Start it and read its events to its end."""
        after = (await self.link.call("GET", "/status")).json()["last"]
        answer = await self.link.call("POST", "/run", body)
        assert answer.status == 202, answer
        return await self.events_until("run.finished", after=after)

    async def events_until(self, kind: str, *, after: int = 0) -> list[dict[str, Any]]:
        found = []
        async with asyncio.timeout(BOUND), aclosing(self.link.events(after)) as events:
            async for event in events:
                found.append(event)
                if event["type"] == kind:
                    break
        return found

    def write(self, path: str, content: str) -> None:
        self.write_bytes(path, content.encode())

    def write_bytes(self, path: str, content: bytes) -> None:
        """A file of the workspace, as the agent's own."""
        assert self.spec.folder is not None
        place = self.spec.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        for each in (place, *[above for above in place.parents if above.is_relative_to(self.spec.folder)]):
            if os.geteuid() == 0:
                os.chown(each, self.spec_owner[0], self.spec_owner[1])

    spec_owner: Sequence[int] = (61184, 61184)


@asynccontextmanager
async def attached(
    site: Site, handlers: Mapping[str, StreamHandler], *, spec: SandboxSpec | None = None, **values: Any
) -> AsyncIterator[Attached]:
    driver = site.driver()
    spec = spec or site.spec(limits=ROOMY, network=Network.LOOPBACK, **values)
    await driver.create(spec)
    await driver.start(spec.id)
    link = await ExecutorLink.started(driver, spec.id, handlers=handlers, python=site.require_python())
    try:
        yield Attached(link=link, driver=driver, spec=spec, spec_owner=(site.owner.uid, site.owner.gid))
    finally:
        await link.close()
