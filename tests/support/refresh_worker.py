"""A process to be killed: others change a project, and an agent's workspace is refreshed, one turn after the other.

python -m tests.support.refresh_worker DATABASE_URL DATA PROVIDER FIRST_TURN
Says `turn N` when the others' changes of a turn are committed, and `made N` when they are in the agent's folder.
"""

import asyncio
import sys
from pathlib import Path

from tests.support.gate_world import delete, write

from contextbase.bootstrap import open_services
from contextbase.config import Settings
from contextbase.gate.model import CommitRequest
from contextbase.workspaces.model import NamedWorkspace

__all__ = ["AGENT", "FILES", "PROJECT", "content"]

AGENT = "ann"
PROJECT = "refreshed"
FILES = tuple(f"{number % 3}/{number}.json" for number in range(12))


def content(*, agent: int, others: int) -> bytes:
    """A file in which the agent and the others have a line each."""
    return f'{{\n  "agent": {agent},\n  "between": 0,\n  "others": {others}\n}}\n'.encode()


async def _work(url: str, data: Path, provider: str, first: int) -> None:
    settings = Settings.model_validate({"data": data, "database_url": url, "workspace_provider": provider})
    async with open_services(settings) as opened:
        services = opened.core
        owner = await services.identity.authenticate(services.data.read_owner_token() or "")
        project_id = await services.projects.id_of(owner, PROJECT)
        print("started", flush=True)
        for turn in range(first, first + 1000):
            async with services.database.connection() as connection:
                head = (await services.gate.opened(connection, owner, project_id)).seq
            changes = [write(path, content(agent=0, others=turn), head) for path in FILES]
            changes += [write(f"new/{turn}.txt", b"new\n", head), delete(f"new/{turn - 1}.txt", head)]
            await services.gate.commit(owner, CommitRequest(project_id=project_id, changes=tuple(changes)))
            print(f"turn {turn}", flush=True)
            await opened.agents.workspaces.refresh(owner, NamedWorkspace(project_id, AGENT))
            print(f"made {turn}", flush=True)


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
