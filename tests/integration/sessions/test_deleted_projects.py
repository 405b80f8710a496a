"""A session's sandbox ends when its project is deleted, and work that is stored nowhere stays."""

import pytest
from tests.support.agent_world import AgentWorld
from tests.support.scripted_model import script

from contextbase.db.database import Database
from contextbase.sessions.model import AgentSession, Land
from contextbase.workspaces.repository import WorkspaceRecord

pytestmark = pytest.mark.timeout(1200)


async def sandboxes(agents: AgentWorld) -> int:
    driver = await agents.services.agents.driving.driver()
    return len(await driver.found())


async def with_sandbox(agents: AgentWorld) -> tuple[AgentSession, WorkspaceRecord]:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script({"tool": "bash", "input": {"command": "echo mine > plan"}}))
    record = await agents.services.agents.workspaces.path(session.caller(), session.workspace)
    assert await sandboxes(agents) == 1
    return session, record


async def worker_row(database: Database, session: AgentSession) -> tuple[object, ...]:
    query = "SELECT state, container_id, lost_at IS NOT NULL AS lost FROM session_workers WHERE session_id = $1"
    async with database.connection() as connection:
        [row] = await connection.fetch(query, session.id)
    return tuple(row)


async def test_the_sandbox_ends_with_the_project_and_the_folder_stays(agents: AgentWorld) -> None:
    session, record = await with_sandbox(agents)
    (record.path / "plan").write_text("not stored")
    await agents.services.core.projects.delete(agents.owner, agents.project_id)
    for _ in range(2):
        await agents.workers.upkeep.sweep()
        assert await sandboxes(agents) == 0
        assert agents.host.live(session.id) is None
        assert agents.homes() == []
        assert (record.path / "plan").read_text() == "not stored"
        assert await worker_row(agents.services.core.database, session) == ("running", None, False)


async def test_a_session_deleted_after_its_project_leaves_nothing_on_the_machine(agents: AgentWorld) -> None:
    session, record = await with_sandbox(agents)
    await agents.services.core.projects.delete(agents.owner, agents.project_id)
    await agents.services.core.sessions.service.delete(agents.owner, session.id)
    await agents.workers.upkeep.sweep()
    assert await sandboxes(agents) == 0
    assert not record.path.exists()
    assert agents.homes() == []
    assert await worker_row(agents.services.core.database, session) == ("deleted", None, True)
