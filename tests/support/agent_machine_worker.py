"""A machine that works on runs, to be killed.

python -m tests.support.agent_machine_worker SETTINGS      (as JSON)
Says `started`. SIGTERM stops it as a machine is stopped, and its sandboxes too.
"""

import asyncio
import json
import signal
import sys
from typing import Any

from tests.support.agent_world import remove_sandboxes

from contextbase.bootstrap import ProcessRole, open_services
from contextbase.config import Settings


async def work(settings: dict[str, Any]) -> None:
    async with open_services(Settings.model_validate(settings), roles=frozenset({ProcessRole.MACHINE})) as services:
        assert services.machine is not None
        await services.machine.start(None)
        chores = asyncio.create_task(services.chores.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, chores.cancel)
        print("started", flush=True)
        await asyncio.gather(chores, return_exceptions=True)
        await services.machine.workers.runs.close()
        await remove_sandboxes(services)


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.argv[1])))
