"""kill -9 at any moment: no half layer is ever used, no agent's work lost, and nothing keeps others waiting."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.mirror_worker import COMMITS, worked_on
from tests.support.require import require_root
from tests.support.workspaces import mounts_below, new_site, open_site, read_tree, unmount_all

from contextbase.errors import NotFound

_KILLS = 12
_REPOSITORY = Path(__file__).parents[3]


async def test_killed_at_any_moment_every_snapshot_and_all_work_is_whole(tmp_path: Path) -> None:
    require_root()
    root, chance = tmp_path / "site", random.Random(7)
    async with open_site(root, "overlay", snapshots=worked_on()):
        for turn in range(_KILLS):
            _run_and_kill(root, lines=chance.randint(0, 12), pause=chance.uniform(0.0, 0.02))
            if turn % 3 == 0:
                unmount_all(root)  # as after a reboot
        await _check(root)


async def _check(root: Path) -> None:
    site = new_site(root, "overlay", worked_on())
    ids = await site.provider.workspaces()
    kept = 0
    for workspace_id in ids:
        try:
            workspace = await site.provider.open_workspace(workspace_id)
        except NotFound:
            await site.provider.cleanup(workspace_id)  # never finished: no agent was in it
            continue
        kept += 1
        tree = dict(site.snapshots.trees[workspace.view.snapshot.seq])
        if workspace.view.masked:
            tree = {path: node for path, node in tree.items() if not path.startswith("base/0/")}
        found = read_tree(workspace.path)
        mine = found.pop("mine.txt", None)
        assert found == tree
        assert await site.changes(workspace) == ({"created mine.txt"} if mine is not None else set())
        await site.provider.cleanup(workspace_id)
    assert kept > 0
    for seq in range(1, COMMITS + 2, 10):
        workspace = await site.create(seq=seq)
        assert read_tree(workspace.path) == site.snapshots.trees[seq]
        await site.provider.cleanup(workspace.id)
    assert mounts_below(root) == []
    assert [
        path for name in ("upper", "work", "workspaces", "removed", "pins") for path in (root / name).iterdir()
    ] == []
    left = await site.mirror.evict(cap=0)
    assert left > 0
    assert await site.mirror.evict(cap=0) == 0


def _run_and_kill(root: Path, *, lines: int, pause: float) -> None:
    """After it said so many times how far it is, and a moment more."""
    command = [sys.executable, "-m", "tests.support.mirror_worker", str(root)]
    with subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        for _ in range(lines + 1):
            assert worker.stdout.readline()
        time.sleep(pause)
        worker.send_signal(signal.SIGKILL)
