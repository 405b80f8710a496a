"""A server that is attached to a sandbox, runs a turn and says which events it got, until it is killed. Its argument is
JSON: driver, sandbox, python, body."""

import asyncio
import json
import sys
from typing import Any

from tests.support.executor_site import driver_of, gateway_handler
from tests.support.scripted_model import RecordedModel

from contextbase.sandbox.model import SandboxId
from contextbase.sessions.executor_link import ExecutorLink

__all__: list[str] = []


async def main(values: dict[str, Any]) -> None:
    handlers = {"model": gateway_handler(RecordedModel())}
    link = await ExecutorLink.started(
        driver_of(values["driver"]), SandboxId(values["sandbox"]), handlers=handlers, python=values["python"]
    )
    await link.call("POST", "/run", values["body"])
    async for event in link.events():
        print(json.dumps(event), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
