"""Agents of all programs at work on one project at the same time."""

from pathlib import Path

import pytest
from tests.support.agent_clis import installed
from tests.support.agent_program_cases import PROGRAMS
from tests.support.agent_world import open_agent_world
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.db.database import DatabaseAddress
from contextbase.review.model import ItemFilter
from contextbase.sessions.model import AgentRun
from contextbase.sessions.states import RunState

pytestmark = pytest.mark.timeout(1200)

AGENTS = 6
"""A small machine has room for as many; ten were tried by hand."""

LINES = [f"{number}. open" for number in range(AGENTS)]


def text(lines: list[str]) -> bytes:
    """Far enough apart that edits of two lines are merged."""
    return "\n\n\n\n".join(lines).encode() + b"\n"


async def test_all_edits_of_many_agents_are_in_or_in_review(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    """Each of them changes a line of its own in a file of all, writes a file of its own, and writes one that the others
    write, too."""
    folders = sorted({str(installed(name).parent) for name in PROGRAMS})
    providers = [program.provider for program in PROGRAMS.values()]
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", agent_folders=folders) as agents,
    ):
        await agents.put({"list.md": text(LINES)})
        runs: list[AgentRun] = []
        for number in range(AGENTS):
            session = await agents.session(provider=providers[number % len(providers)])
            runs.append(
                await agents.send(
                    session,
                    script(
                        {"tool": "bash", "input": {"command": f"sed -i 's/^{number}. open$/{number}. done/' list.md"}},
                        {"tool": "write", "input": {"path": f"notes/{number}.md", "content": f"Note {number}.\n"}},
                        {"tool": "write", "input": {"path": "same.md", "content": f"Mine is {number}.\n"}},
                        {"text": "Done."},
                    ),
                )
            )
        became: dict[str, list[str]] = {}
        for run in runs:
            ended = await agents.ended(run)
            assert ended.state is RunState.SUCCEEDED, (ended.provider, ended.reason, ended.message)
            assert ended.landed is not None
            paths = ended.landed["paths"]
            assert isinstance(paths, list)
            assert len(paths) == 3
            for one in paths:
                became.setdefault(one["path"], []).append(one["status"])
        assert await agents.read("list.md") == text([f"{number}. done" for number in range(AGENTS)])
        assert set(became.pop("list.md")) <= {"written", "merged"}
        for number in range(AGENTS):
            assert await agents.read(f"notes/{number}.md") == f"Note {number}.\n".encode()
            assert became.pop(f"notes/{number}.md") == ["written"]
        first = await agents.read("same.md")
        assert first in {f"Mine is {number}.\n".encode() for number in range(AGENTS)}
        statuses = became.pop("same.md")  # who begins when another one is done has that file, and changes it
        assert len(statuses) == AGENTS
        assert set(statuses) <= {"written", "in_review"}
        assert became == {}
        found = await agents.services.core.reviews.page(agents.owner, agents.project_id, ItemFilter())
        assert len(found.items) == statuses.count("in_review")
