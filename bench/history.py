"""History, measured beside git: `python -m bench.history [--json]`.

One history of 10,000 commits over 2,000 files is made twice: through the gate, and in git. Then both are asked the same
questions in turn, and the medians are printed: the log of a file that 1,000 commits changed; the patch between two
snapshots 100 commits apart; the blame of that file, of 1,000 lines; the whole tree at an old commit. Git's time is that
of its process; what it reads is in the system's memory. contextbase's is that of the service in the server's process.

Every blame starts from nothing. Trees and comparisons are remembered by the server: three of each are asked for, five
times over, so that their medians are of what was asked before; what the first answers took goes to standard error.
`undo_s` is how long it takes to undo one agent's 200 commits among 5,000 of others in the same files.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import uvloop
from tests.support.postgres import reachable_folder

from bench.history_git import GitHistory
from bench.history_load import LONG_FILE, Commit, history
from bench.history_undo import measure_undo
from contextbase.bootstrap import CoreServices, open_core
from contextbase.compare import render_patch
from contextbase.compute.thread import ThreadCompute
from contextbase.config import Settings
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.model import ChangeAction, CommitRequest, Content, RequestedChange
from contextbase.gate.repository import GateRepository
from contextbase.history.blame import Blames
from contextbase.history.contents import ContentLoader
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath

COMMITS: Final = 10_000
FILES: Final = 2_000
APART: Final = 100
_ROUNDS: Final = 15
_SNAPSHOTS: Final = 3
_LONG: Final = TreePath(LONG_FILE)

Ask = Callable[[], Awaitable[object]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--commits", type=int, default=COMMITS)
    options.add_argument("--files", type=int, default=FILES)
    arguments = options.parse_args()
    figures = uvloop.run(measure(arguments.commits, arguments.files))
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:14}{value:>12,.3f}")


async def measure(commits: int, files: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name, reachable_folder() as folder:
        print("making the history in git …", file=sys.stderr)
        git = await asyncio.to_thread(GitHistory.build, Path(name) / "git", history(commits, files))
        async with open_core(Settings(data=folder / "data")) as services:
            print("making the history through the gate …", file=sys.stderr)
            world = await World.build(services, commits, files)
            figures = await compare(world, git)
            print("one agent among many …", file=sys.stderr)
            figures["undo_s"] = round(await measure_undo(services.database, folder), 3)
    return figures


@dataclass(frozen=True, kw_only=True)
class World:
    services: CoreServices
    owner: Caller
    project_id: ProjectId
    head: int

    @classmethod
    async def build(cls, services: CoreServices, commits: int, files: int) -> "World":
        secret = await services.identity.ensure_owner(None)
        assert secret is not None
        owner = await services.identity.authenticate(secret, origin="", trace_id="")
        project = await services.projects.create(owner, "history")
        head = 0
        for batch in history(commits, files):
            await asyncio.gather(*(services.gate.commit(owner, _request(project.id, commit, head)) for commit in batch))
            head += len(batch)
        return cls(services=services, owner=owner, project_id=project.id, head=head)

    async def log(self) -> list[int]:
        page = await self.services.history.log(self.owner, self.project_id, path=_LONG, limit=1000)
        return [entry.seq for entry in page.entries]

    async def patch(self, old: int) -> bytes:
        diffs = self.services.diffs
        page = await diffs.between(self.owner, self.project_id, str(old), str(old + APART), limit=1000)
        assert page.next_after is None
        return b"".join(render_patch(file.diff) for file in page.files)

    async def blame(self) -> list[int]:
        services = self.services
        blames = Blames(
            database=services.database,
            gate=services.gate,
            snapshots=services.snapshots,
            contents=self._contents(),
            compute=ThreadCompute(),
        )
        found = await blames.lines(self.owner, self.project_id, _LONG)
        seqs = {origin.number: origin.seq for origin in found.origins}
        return [seqs[run.number] for run in found.lines for _ in run.lines]

    async def tree(self, seq: int) -> list[str]:
        found = await self.services.reads.below(
            self.owner, self.project_id, None, seq=Seq(seq), contents=False, limit=10_000
        )
        return [entry.path for entry in found.entries]

    def _contents(self) -> ContentLoader:
        """With nothing in memory."""
        return ContentLoader(repository=GateRepository(), catalog=self.services.catalog, cache=ContentCache())


def _request(project_id: ProjectId, commit: Commit, head: int) -> CommitRequest:
    changes = tuple(
        RequestedChange(
            action=ChangeAction.WRITE,
            path=TreePath(path),
            base=Seq(head),
            content=Content(hash=ContentHash.of(content), size=len(content), inline=content),
        )
        for path, content in commit.contents.items()
    )
    return CommitRequest(project_id=project_id, changes=changes, message="a change")


async def compare(world: World, git: GitHistory) -> dict[str, float]:
    random, head = Random(2), world.head
    snapshots = [random.randrange(head // 4, head - APART) for _ in range(_SNAPSHOTS)]
    took: dict[str, list[float]] = {}
    for number in range(_ROUNDS):
        old = snapshots[number % _SNAPSHOTS]
        revisions = [git.revision(seq, head) for seq in (old, old + APART)]
        questions: dict[str, tuple[Ask, tuple[str, ...]]] = {
            "log": (world.log, ("log", "--format=%H %an %at %s", "main", "--", LONG_FILE)),
            "diff": (lambda old=old: world.patch(old), ("diff", *revisions)),
            "blame": (world.blame, ("blame", "--porcelain", "main", "--", LONG_FILE)),
            "tree": (lambda old=old: world.tree(old), ("ls-tree", "-r", revisions[0])),
        }
        for name, (ask, arguments) in questions.items():
            start = time.perf_counter()
            answer = await ask()
            took.setdefault(f"{name}_ms", []).append(time.perf_counter() - start)
            seconds, output = git.timed(*arguments)
            took.setdefault(f"git_{name}_ms", []).append(seconds)
            assert answer, name
            assert output, name
    for name in ("diff_ms", "tree_ms"):
        print(f"first {name}: {1000 * median(took[name][:_SNAPSHOTS]):.3f}", file=sys.stderr)
    return {name: round(1000 * median(times), 3) for name, times in took.items()}


if __name__ == "__main__":
    main()
