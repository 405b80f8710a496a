"""A process to be killed: agents who work in their folders, commit and complete, one step after the other.

python -m tests.support.workspace_worker DATABASE_URL DATA PROVIDER SEED
Says `wrote PATH` when a file is in an agent's folder, `added KEY` when a key is in its copy of the file that all
change, and `made N` after each step. Now and then an agent renames the folder that it writes to: a file keeps its name
and says in which folder it was made.
"""

import asyncio
import json
import random
import sys
from pathlib import Path
from uuid import uuid4

from contextbase.bootstrap import open_services
from contextbase.config import Settings
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace

__all__ = ["AGENTS", "PROJECT", "SHARED"]

AGENTS = ("ann", "ben", "cyd")
PROJECT = "worked-on"
SHARED = "shared.json"


async def _work(url: str, data: Path, provider: str, seed: int) -> None:
    chance = random.Random(seed)
    settings = Settings.model_validate({"data": data, "database_url": url, "workspace_provider": provider})
    async with open_services(settings) as opened:
        services = opened.core
        secret = services.data.read_owner_token()
        assert secret
        owner = await services.identity.authenticate(secret)
        project_id = await services.projects.id_of(owner, PROJECT)
        workspaces = opened.agents.workspaces
        await opened.agents.workspace_upkeep.sweep()
        print("started", flush=True)
        for number in range(200):
            agent = chance.choice(AGENTS)
            folder = (await workspaces.create(owner, project_id, agent)).record.path
            own = _own_folder(folder, agent, renamed=chance.random() < 0.3)
            for _ in range(chance.randint(1, 3)):
                path = f"{own}/{uuid4().hex}.txt"
                draft = folder / f"{own}/draft~"
                draft.write_text(path)
                draft.rename(folder / path)
                print(f"wrote {path}", flush=True)
            if chance.random() < 0.5:
                _add_key(folder, f"{agent}-{uuid4().hex}")
            wish = Wish(message=f"step {number}")
            if chance.random() < 0.5:
                await workspaces.commit(owner, NamedWorkspace(project_id, agent), wish=wish)
            else:
                await workspaces.complete(owner, NamedWorkspace(project_id, agent), wish=wish)
            print(f"made {number}", flush=True)


def _own_folder(folder: Path, agent: str, *, renamed: bool) -> str:
    """The agent's folder, under its other name if it was to be renamed."""
    names = (agent, f"{agent}-renamed")
    now = next((name for name in names if (folder / name).is_dir()), agent)
    [other] = {*names} - {now}
    (folder / now).mkdir(exist_ok=True)
    if not renamed or (folder / other).exists():
        return now
    (folder / now).rename(folder / other)
    return other


def _add_key(folder: Path, key: str) -> None:
    values = json.loads((folder / SHARED).read_text())
    draft = folder / f"{SHARED}~"
    draft.write_text(json.dumps({**values, key: key}, indent=1) + "\n")
    draft.rename(folder / SHARED)
    print(f"added {key}", flush=True)


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
