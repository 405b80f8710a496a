"""Searching text, beside git and ripgrep; and what the index costs commits."""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Final

import uvloop
from tests.support.postgres import reachable_folder

from bench.files_search_corpus import RARE, corpus
from contextbase.bootstrap import CoreServices, open_core
from contextbase.config import Settings
from contextbase.gate.model import ChangeAction, CommitRequest, Content, RequestedChange
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.search.indexer import SearchIndexer
from contextbase.search.model import ContentQuery
from contextbase.search.pattern import TextPattern

__all__ = ["measure_search"]

_BATCH: Final = 1000
_ROUNDS: Final = 15
_WRITERS: Final = 20

Figures = dict[str, float | None]


def measure_search(files: int, seconds: float) -> Figures:
    """`seconds`: how long commits are counted with the index, and without it."""
    return uvloop.run(_measured(files, seconds))


async def _measured(files: int, seconds: float) -> Figures:
    with tempfile.TemporaryDirectory() as name, reachable_folder() as folder:
        repository = Path(name)
        async with open_core(Settings(data=folder / "data")) as services:
            secret = await services.identity.ensure_owner(None)
            assert secret is not None
            owner = await services.identity.authenticate(secret)
            print("committing the tree …", file=sys.stderr)
            project_id = await _filled(services, owner, files, repository)
            await asyncio.to_thread(_git_committed, repository)
            print("indexing it …", file=sys.stderr)
            figures = await _indexed(services)
            figures |= await _searched(services, owner, project_id, repository)
            print("landing with and without the index …", file=sys.stderr)
            figures["landing_with_index_ratio"] = await _landing_ratio(services, owner, seconds)
    return figures


async def _filled(services: CoreServices, owner: Caller, files: int, repository: Path) -> ProjectId:
    project = await services.projects.create(owner, "searched")
    head, tree = 0, corpus(files)
    while batch := list(islice(tree, _BATCH)):
        for path, content in batch:
            file = repository / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        head = (await services.gate.commit(owner, _request(project.id, batch, head))).seq
    return project.id


def _request(project_id: ProjectId, files: list[tuple[str, bytes]], base: int) -> CommitRequest:
    changes = tuple(
        RequestedChange(
            action=ChangeAction.WRITE,
            path=TreePath(path),
            base=Seq(base),
            content=Content(hash=ContentHash.of(content), size=len(content), inline=content),
        )
        for path, content in files
    )
    return CommitRequest(project_id=project_id, changes=changes, message="files")


def _git_committed(repository: Path) -> None:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "files")):
        subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True)


async def _indexed(services: CoreServices) -> Figures:
    start = time.perf_counter()
    indexer = _eager(services)
    while await indexer.index_some():
        pass
    return {"index_s": round(time.perf_counter() - start, 3)}


async def _searched(services: CoreServices, owner: Caller, project_id: ProjectId, repository: Path) -> Figures:
    query = ContentQuery(pattern=TextPattern(text=RARE))
    commands = {"git_grep_ms": ["git", "grep", "-nF", RARE]}
    if (ripgrep := shutil.which("rg")) is not None:
        commands["ripgrep_ms"] = [ripgrep, "-nF", RARE]
    took: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        page = await services.search.contents(owner, project_id, query, limit=1000)
        took.setdefault("search_ms", []).append(time.perf_counter() - start)
        assert page.cursor is None
        for name, command in commands.items():
            start = time.perf_counter()
            found = subprocess.run(command, cwd=repository, check=True, capture_output=True)  # noqa: ASYNC221 - in turn
            took.setdefault(name, []).append(time.perf_counter() - start)
            assert len(found.stdout.splitlines()) == sum(len(file.lines) for file in page.files)
    return {"ripgrep_ms": None} | {name: round(1000 * median(times), 3) for name, times in took.items()}


async def _landing_ratio(services: CoreServices, owner: Caller, seconds: float) -> float:
    """Measured in turn, several times: how busy the machine is changes meanwhile."""
    landed = {True: 0, False: 0}
    for turn in range(6):
        with_index = turn % 2 == 0
        landed[with_index] += await _landed(services, owner, turn, seconds / 3, with_index=with_index)
    return round(landed[True] / landed[False], 3)


async def _landed(services: CoreServices, owner: Caller, turn: int, seconds: float, *, with_index: bool) -> int:
    project = await services.projects.create(owner, f"landing-{turn}")
    until, count = time.perf_counter() + seconds, 0

    async def write(writer: int) -> None:
        nonlocal count
        head = 0
        while time.perf_counter() < until:
            content = f"{RARE} of writer {writer}, number {count}\n".encode() * 20
            answer = await services.gate.commit(owner, _request(project.id, [(f"w{writer}.txt", content)], head))
            head, count = answer.seq, count + 1

    indexing = asyncio.create_task(_keep_indexed(services)) if with_index else None
    await asyncio.gather(*map(write, range(_WRITERS)))
    if indexing is not None:
        indexing.cancel()
        await asyncio.gather(indexing, return_exceptions=True)
    return count


async def _keep_indexed(services: CoreServices) -> None:
    """As the server has it, without the wait of a few seconds between two runs."""
    indexer = _eager(services)
    while True:
        await indexer.index_all()
        await asyncio.sleep(1)


def _eager(services: CoreServices) -> SearchIndexer:
    """It does not wait for more."""
    return replace(services.search_indexer, patience=timedelta(0))
