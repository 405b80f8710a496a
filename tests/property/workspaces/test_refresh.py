"""Several agents at work, with programs that hold files open, refreshing and committing in any order: all of them come
to see the same, and nothing that was written is lost."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.file_holder import FileHolder
from tests.support.postgres import database_copy
from tests.support.snapshots import FOLDER
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, read_tree

from contextbase.db.database import DatabaseAddress
from contextbase.workspaces.editor import FolderEditor
from contextbase.workspaces.model import Owner

AGENTS = ("ann", "ben", "cyd")
PATHS = ("a", "b", "docs/c", "docs/d", "docs/deep/e")
PLACES = 4  # in each file, with lines between them that nobody changes
START = b"".join(b"- %d\n\n\n\n" % place for place in range(PLACES))

Step = tuple[str, int, int, int]
STEPS = st.tuples(
    st.sampled_from(
        """insert, insert, save, delete, rename, rename folder, commit, refresh, refresh, both,
        hold to read, hold to append, append, read on, let go""".replace("\n       ", "").split(", ")
    ),
    st.integers(0, len(AGENTS) - 1),
    st.integers(0, len(PATHS) - 1),
    st.integers(0, PLACES - 1),
)


@dataclass
class _Agent:
    name: str
    root: Path
    holder: FileHolder
    reading: dict[str, bytes] = field(default_factory=dict)  # what it opened, by path
    appending: set[str] = field(default_factory=set)


@dataclass
class _Play:
    world: WorkspaceWorld
    agents: list[_Agent]
    written: set[bytes] = field(default_factory=set)
    removed: set[bytes] = field(default_factory=set)  # by whoever deleted a file that had it
    count: int = 0

    async def take(self, step: Step) -> None:
        order, number, path_number, place = step
        agent, path = self.agents[number], PATHS[path_number]
        file = agent.root / path
        if order in ("commit", "both"):
            await self.world.commit(agent.name)
        if order in ("refresh", "both"):
            await self.world.refresh(agent.name)
        if order in ("insert", "save"):
            self._insert(file, place, by_rename=order == "save")
        elif order == "delete" and file.is_file():
            self.removed |= set(_tokens(file.read_bytes()))
            file.unlink()
        elif order == "rename" and file.is_file() and not file.with_name(f"{file.name}2").exists():
            file.rename(file.with_name(f"{file.name}2"))
        elif order == "rename folder" and not (agent.root / "docs2").exists():
            with suppress(FileNotFoundError, OSError):  # no folder of the project can be renamed by user attributes
                (agent.root / "docs").rename(agent.root / "docs2")
        else:
            self._program(agent, order, path)

    def _insert(self, file: Path, place: int, *, by_rename: bool) -> None:
        token = self._token()
        text = file.read_bytes() if file.is_file() else START
        changed = text.replace(b"- %d\n" % place, b"- %d\n%s\n" % (place, token), 1)
        if file.is_dir() or changed == text:
            return
        with suppress(NotADirectoryError, FileExistsError):
            file.parent.mkdir(parents=True, exist_ok=True)
            if by_rename:
                draft = file.with_name(f"{file.name}~")
                draft.write_bytes(changed)
                draft.rename(file)
            else:
                file.write_bytes(changed)
            self.written.add(token)

    def _program(self, agent: _Agent, order: str, path: str) -> None:
        ask = agent.holder.ask
        if order in ("hold to read", "hold to append") and path not in agent.reading and path not in agent.appending:
            mode = order.rpartition(" ")[2]
            if (agent.root / path).is_file() and ask(f"{mode} {path}") is not None:
                if mode == "append":
                    agent.appending.add(path)
                else:
                    agent.reading[path] = bytes.fromhex(ask(f"again {path}") or "")
        elif order == "append" and path in agent.appending:
            token = self._token()
            assert ask(f"more {path} {token.decode()}") is not None
            self.written.add(token)
        elif order == "read on" and path in agent.reading:
            now = bytes.fromhex(ask(f"again {path}") or "")
            assert set(_tokens(agent.reading[path])) <= set(_tokens(now)), "what it opened is not there any more"
        elif order == "let go":
            self.let_go(agent, path)

    @staticmethod
    def let_go(agent: _Agent, path: str) -> None:
        if path in agent.reading or path in agent.appending:
            assert agent.holder.ask(f"close {path}") is not None
            agent.reading.pop(path, None)
            agent.appending.discard(path)

    def _token(self) -> bytes:
        self.count += 1
        return b"token%d" % self.count

    async def settle(self) -> None:
        """Everybody commits and refreshes until nothing is left to do."""
        for agent in self.agents:
            for path in [*agent.reading, *agent.appending]:
                self.let_go(agent, path)
        for _ in range(2):
            for agent in self.agents:
                await self.world.commit(agent.name)
            for agent in self.agents:
                await self.world.refresh(agent.name)


def _tokens(content: bytes) -> Iterator[bytes]:
    return (line for line in content.splitlines() if line.startswith(b"token"))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_all_come_to_see_the_same_and_nothing_is_lost(
    embedded_database_server: DatabaseAddress, provider: str, tmp_path: Path
) -> None:
    @given(steps=st.lists(STEPS, min_size=10, max_size=60))
    @settings(max_examples=20)
    def check(steps: list[Step]) -> None:
        runner.run(_check(world, steps))

    async def opened() -> WorkspaceWorld:
        address = await stack.enter_async_context(database_copy(embedded_database_server, "contextbase_template"))
        return await stack.enter_async_context(open_world(address, tmp_path, provider))

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            world = runner.run(opened())
            check()
        finally:
            runner.run(stack.aclose())


async def _check(world: WorkspaceWorld, steps: list[Step]) -> None:
    await world.new_project()
    await world.put(dict.fromkeys(PATHS, START))
    with ExitStack() as stack:
        agents = []
        for name in AGENTS:
            root = await world.create(name)
            agents.append(_Agent(name, root, stack.enter_context(FileHolder(root))))
        play = _Play(world, agents)
        for step in steps:
            await play.take(step)
        await play.settle()
    head, aside = await world.tree(), await _set_aside(world)
    for agent in agents:
        assert await world.status(agent.name) == set()
        shown = {path: node for path, node in read_tree(agent.root).items() if not path.startswith(".")}
        own = {path for path, node in shown.items() if head.get(path) != node}
        assert own <= {path for path, _ in aside}, "only what waits for a person is still as the agent has it"
        assert {path for path, node in head.items() if node is not FOLDER} <= shown.keys()
    in_head = {token for node in head.values() if isinstance(node, bytes) for token in _tokens(node)}
    in_review = {token for _, content in aside for token in _tokens(content)}
    late = {token for agent in agents for token in _late_tokens(agent.root)}
    assert play.written - play.removed - in_head - in_review - late == set()
    for agent in agents:
        await world.complete(agent.name, discard=True)


async def _set_aside(world: WorkspaceWorld) -> set[tuple[str, bytes]]:
    """What waits for a person, or lost against another version."""
    async with world.services.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT s.path, c.content FROM side_versions s JOIN blob_contents c ON c.hash = s.content_hash "
            "WHERE s.project_id = $1",
            world.project_id,
        )
    return {(row["path"], row["content"]) for row in rows}


def _late_tokens(root: Path) -> Iterator[bytes]:
    """What was written to a file just when it was replaced: it is reported, and completing keeps the folder."""
    with FolderEditor(root, owner=Owner.of_this_process()) as editor:
        for place in editor.late_writes():
            yield from _tokens((root / place).read_bytes())
