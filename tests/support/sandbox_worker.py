"""A server that has sandboxes and is killed: arguments are its root folder, a node's name, a workspace and a mark."""

import asyncio
import json
import sys
from pathlib import Path
from uuid import uuid4

from tests.support.sandbox_drivers import agents_owner, shell

from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.model import Command, SandboxId, SandboxSpec

__all__: list[str] = []


async def main(root: str, node: str, workspace: str, mark: str) -> None:
    driver = BubblewrapDriver(Path(root), owner=agents_owner(), node=node)
    spec = SandboxSpec(id=SandboxId(str(uuid4())), folder=Path(workspace))
    await driver.create(spec)
    await driver.start(spec.id)
    await (await driver.exec(spec.id, shell("echo kept > /tmp/note"))).wait()
    running = [
        await driver.run(spec, shell(f"setsid sleep {mark}1 & sleep {mark}2")),
        await driver.exec(spec.id, Command(argv=("sleep", f"{mark}3"))),
    ]
    print(json.dumps(str(spec.id)), flush=True)
    await asyncio.gather(*(execution.wait() for execution in running))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
