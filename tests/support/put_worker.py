"""A server process in miniature, to be killed: puts blobs, commits rows that name them, says so, one line each.

python -m tests.support.put_worker DATA_FOLDER SEED COUNT
"""

import asyncio
import sys
from pathlib import Path
from random import Random

from tests.support.tree_writer import TreeWriter, in_pieces, owner_of

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository
from contextbase.bootstrap import CoreServices, open_core
from contextbase.config import load_settings
from contextbase.errors import ContextbaseError, NotFound

SIZES = (0, 17, 4_000, 200_000, 300_000, 1_500_000)  # on both sides of the inline limit


async def work(folder: Path, seed: int, count: int) -> None:
    async with open_core(load_settings(data=folder), own=True) as services:
        writer = await _writer(services)
        random = Random(seed)
        print("ready", flush=True)
        for index in range(count):
            content = random.randbytes(SIZES[index % len(SIZES)]) + f"{seed}-{index}".encode()
            try:
                blob = await services.catalog.put(in_pieces(content))
                version = writer.write(f"files/{seed}-{index}", blob.hash, size=blob.size)
                seq = await writer.commit([version])
            except ContextbaseError as error:
                print("failed", error.code, flush=True)  # PostgreSQL is away: not acknowledged
                await asyncio.sleep(0.05)
                continue
            print("done", seq, version.path, blob.hash, flush=True)


async def _writer(services: CoreServices) -> TreeWriter:
    audit = AuditRepository(AuditKey(services.data.secret_key("audit")))
    caller = await owner_of(services.database)
    try:
        project = await services.projects.find(caller, "crash")
    except NotFound:
        project = await services.projects.create(caller, "crash")
    return TreeWriter(database=services.database, caller=caller, project=project, audit=audit)


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
