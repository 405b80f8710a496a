"""A server process in miniature: requests as JSON lines on standard input, answers as JSON lines, as they come.

python -m tests.support.gate_worker SOCKET_FOLDER DATABASE PROJECT BLOB_FOLDER

Request: {"id", "who", "key", "changes": [[path, text, base], ...]}.
Answer: {"id", "seq", "statuses"} or {"id", "error", "message"}.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.support.gate_world import GateWorld, write

from contextbase.db.database import Database, DatabaseAddress
from contextbase.errors import ContextbaseError


async def serve(address: DatabaseAddress, project: str, folder: Path) -> None:
    database = await Database.connect(address, pool_size=5)
    world = await GateWorld.start(database, folder, project_name=project)
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say({"id": "ready"})
    tasks = set()
    while line := await reader.readline():
        task = asyncio.create_task(answer(world, json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    await database.close()


async def answer(world: GateWorld, request: dict[str, Any]) -> None:
    changes = [write(path, text.encode(), base) for path, text, base in request["changes"]]
    try:
        who = await world.agent(request["who"])
        made = await world.commit(*changes, who=who, key=request["key"], message=request["key"])
    except ContextbaseError as error:
        say({"id": request["id"], "error": error.code, "message": error.message})
    except Exception as error:
        say({"id": request["id"], "error": "internal", "message": repr(error)})
        raise
    else:
        say({"id": request["id"], "seq": made.seq, "statuses": [change.status for change in made.changes]})


def say(line: object) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(DatabaseAddress(socket_folder=sys.argv[1], database=sys.argv[2]), sys.argv[3], Path(sys.argv[4])))
