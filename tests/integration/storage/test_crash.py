"""C1: whatever is killed, whenever: nothing acknowledged is lost, and nothing is left half done."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from tests.support.postgres import reachable_folder
from tests.support.tree_writer import owner_of

from contextbase.bootstrap import CoreServices, open_core
from contextbase.config import load_settings
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.tree import TreeRepository

PUTS = 200
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Acknowledged:
    seq: Seq
    path: TreePath
    content_hash: ContentHash


def run_until_killed(folder: Path, *, random: Random, seed: int) -> list[Acknowledged]:
    """Start a worker, kill something at some moment, and return what was acknowledged by then."""
    victim, kill_after = random.choice(["server", "server", "database", "both"]), random.randint(3, 60)
    command = [sys.executable, "-m", "tests.support.put_worker", str(folder), str(seed), str(PUTS)]
    environment = {"PATH": os.environ["PATH"]}
    acknowledged = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            words = line.split()
            if words[0] != "done":
                continue
            entry = Acknowledged(Seq(int(words[1])), TreePath(words[2]), ContentHash.parse(words[3]))
            acknowledged.append(entry)
            if len(acknowledged) == kill_after:
                time.sleep(random.uniform(0, 0.02))  # somewhere within the next puts, not just after an answer
                if victim in ("database", "both"):
                    kill_postgres(folder)
                if victim in ("server", "both"):
                    worker.kill()
        worker.wait(timeout=60)
        assert acknowledged, worker.stderr.read() if worker.stderr else ""
    return acknowledged


def kill_postgres(folder: Path) -> None:
    """kill -9 of the postmaster; what it started notices and exits."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        postmaster = int((folder / "postgres" / "cluster" / "postmaster.pid").read_text().split("\n")[0])
        os.kill(postmaster, signal.SIGKILL)


@pytest.mark.timeout(240)
async def test_kills_at_random_moments_lose_nothing_acknowledged_and_damage_nothing() -> None:
    random = Random(20)
    acknowledged: list[Acknowledged] = []
    with reachable_folder() as folder:
        for seed in range(50):
            if len(acknowledged) >= PUTS:
                break
            acknowledged += run_until_killed(folder, random=random, seed=seed)
        assert len(acknowledged) >= PUTS
        async with open_core(load_settings(data=folder), own=True) as services:
            problems = [step.problem async for step in services.fsck.run() if step.problem]
            assert problems == []
            await check_all_there(services, acknowledged)


async def check_all_there(services: CoreServices, acknowledged: list[Acknowledged]) -> None:
    project = await services.projects.find(await owner_of(services.database), "crash")
    tree = TreeRepository()
    async with services.database.connection() as connection:
        for entry in acknowledged:
            version = await tree.at_path(connection, project.id, entry.path, entry.seq)
            assert version is not None
            assert (version.seq, version.content_hash) == (entry.seq, entry.content_hash)
    for entry in acknowledged:
        await services.catalog.store.verify(entry.content_hash)
