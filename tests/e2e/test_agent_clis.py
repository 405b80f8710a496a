"""Claude Code, Codex and Opencode, each the real program, work on a project through MCP."""

from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest
from tests.support.agent_clis import AGENT_CLIS, AgentCli
from tests.support.scripted_model import running_scripted_model, script
from tests.support.server import ServerProcess

from contextbase.models.dialects import GatewayError, GatewayProblem
from contextbase.models.model import ModelContext, UsageRecord
from contextbase.sdk import Client

PLAN = script(
    {"tool": "mcp.contextbase.read_file", "input": {"path": "docs/plan.md"}},
    {"tool": "mcp.contextbase.edit_file", "input": {"path": "docs/plan.md", "old": "not done", "new": "done"}},
    {"tool": "mcp.contextbase.search_files", "input": {"text": "the plan: done"}},
    {"tool": "mcp.contextbase.commit", "input": {"message": "It is done"}},
    {"text": "All is done."},
)


def owner_token(server: ServerProcess) -> str:
    return (server.data / "owner-token").read_text().strip()


def use_tool(server: ServerProcess, project: str, tool: str, **arguments: str) -> str:
    answer = httpx.post(
        f"{server.url}/api/v1/tools/{tool}",
        json={"arguments": arguments},
        params={"project": project},
        headers={"Authorization": f"Bearer {owner_token(server)}"},
    )
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["text"]
    return text


class NoBudget:
    """A ledger with nothing left."""

    def __init__(self) -> None:
        self.asked = 0

    async def reserve(self, context: ModelContext, request_id: UUID, amount: int) -> None:
        del context, request_id, amount
        self.asked += 1
        raise GatewayError(GatewayProblem.BUDGET_EXHAUSTED, "The model budget of this run leaves no room.")

    async def settle(self, context: ModelContext, request_id: UUID, record: UsageRecord | None) -> None:
        raise AssertionError("nothing was asked for", context, request_id, record)


@pytest.mark.parametrize("cli", AGENT_CLIS, ids=lambda cli: cli.name)
def test_an_agent_program_ends_its_turn_when_the_budget_is_exhausted(
    server: ServerProcess, tmp_path: Path, cli: AgentCli
) -> None:
    ledger = NoBudget()
    with running_scripted_model(PLAN, ledger) as model:
        printed = cli.run(tmp_path, server, owner_token(server), model)
    assert 1 <= ledger.asked <= 4, printed  # beside the work itself they ask for a title and the like
    assert "budget" in printed


@pytest.mark.parametrize("cli", AGENT_CLIS, ids=lambda cli: cli.name)
def test_an_agent_program_reads_edits_searches_and_commits(
    server: ServerProcess, tmp_path: Path, cli: AgentCli
) -> None:
    name = f"p-{uuid4().hex[:8]}"
    with Client(server.url, owner_token(server)) as owner:
        owner.projects.create(name)
        use_tool(server, name, "write_file", path="docs/plan.md", content="the plan: not done\n")
        token = owner.tokens.create(f"{cli.name}-{name}", project=name, actions=["read", "write"]).secret
        with Client(server.url, token) as agent:
            agent.workspaces.create(name)
        with running_scripted_model(PLAN) as model:
            printed = cli.run(tmp_path, server, token, model)
        assert cli.tool_name("read_file") in model.offered, f"{sorted(model.offered)}\n{printed}"
        assert len(model.answers) == 4, f"{model.answers}\n{printed}"
        read, edited, found, committed = model.answers
        assert "the plan: not done" in read
        assert "Edited docs/plan.md" in edited
        assert "docs/plan.md" in found
        assert "Commit 2" in committed
        assert use_tool(server, name, "read_file", path="docs/plan.md") == "the plan: done\n"
