"""A process to be killed: mirrors one snapshot after the other and makes a workspace on each.

python -m tests.support.mirror_worker ROOT
"""

import asyncio
import sys
from pathlib import Path

from tests.support.snapshots import MemorySnapshots, Tree
from tests.support.workspaces import new_site

__all__ = ["COMMITS", "worked_on"]

COMMITS = 60


def worked_on() -> MemorySnapshots:
    """The same history in every process: files come, change, go, and make way for folders."""
    snapshots = MemorySnapshots()
    snapshots.commit({f"base/{number % 7}/{number}.txt": b"%d\n" % number for number in range(200)})
    for turn in range(COMMITS):
        tree: Tree = {**snapshots.trees[-1], f"base/{turn % 7}/new{turn}": b"%d" % turn, "same.txt": b"%d" % turn}
        for path in [path for path in tree if path.startswith(f"base/{(turn + 3) % 7}/new")]:
            del tree[path]
        place = "place" if turn % 2 else "place/inside"
        tree = {path: node for path, node in tree.items() if not path.startswith("place")}
        snapshots.trees.append({**tree, place: b"%d" % turn})
    return snapshots


async def _work(root: Path) -> None:
    site = new_site(root, "overlay", worked_on())
    print("started", flush=True)
    for seq in range(1, COMMITS + 2):
        await site.provider.sync_lower(site.snapshots.key(seq))
        workspace = await site.create(seq=seq, masked=("base/0",) if seq % 3 == 0 else ())
        (workspace.path / "mine.txt").write_bytes(b"%d" % seq)
        print(f"made {seq}", flush=True)
        if seq % 2:
            await site.provider.cleanup(workspace.id)
        if seq % 5 == 0:
            await site.mirror.evict(cap=0)


if __name__ == "__main__":
    asyncio.run(_work(Path(sys.argv[1])))
