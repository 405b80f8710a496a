"""Every block of the README, the tour and the guides, pasted as a reader would: in order, into one shell."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.reader import blocks_of, reader
from tests.support.require import require_program, require_root

pytestmark = [pytest.mark.xdist_group("documents"), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "docs/tour.md", *sorted(f"docs/guides/{page.name}" for page in ROOT.glob("docs/guides/*.md"))]


def test_every_block_that_is_not_run_is_known_with_its_reason() -> None:
    not_run = {
        name: reasons
        for name in DOCUMENTS
        if (reasons := [block.not_run for block in blocks_of(ROOT / name) if block.not_run])
    }
    assert not_run == {"README.md": ["the test starts the server itself, and is a part of make test"]}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_of_a_document_runs_as_it_is_pasted(name: str) -> None:
    require_root()
    require_program("bwrap", "apt-get install bubblewrap")
    require_program("curl", "apt-get install curl")
    with reader() as someone:
        printed = someone.follow(ROOT / name)
    if name in WHAT_IT_SAYS:
        WHAT_IT_SAYS[name](printed)


def readme(printed: list[str]) -> None:
    first, as_the_agent, python, workspace, runs, agent = printed
    assert "ready" in first
    assert "No problems found" in first
    assert '"principal": "my-agent"' in as_the_agent or '"principal":"my-agent"' in as_the_agent
    assert re.fullmatch(r"\d+ written\n", python)
    assert "M  plan.md" in workspace
    assert "its folder removed" in workspace
    assert "20 agents: 20 succeeded." in runs
    assert "1 file written." in agent


def tour(printed: list[str]) -> None:
    _, merged, collided, resolved, undone, last = printed
    assert merged.endswith('{\n  "currency": "CHF",\n  "tax": 8\n}\n')
    assert "We launch in June." in collided
    assert "Ben and Carl test." in collided
    assert "plan.md" in collided.rpartition("test.")[2]
    assert resolved.endswith("# Plan\n\nWe launch in July.\n\nAnn leads.\n\nBen and Carl test.\n")
    assert '{\n  "currency": "EUR",\n  "tax": 8\n}\n' in undone
    assert undone.endswith("We launch in July.\n\nAnn leads.\n\nBen and Carl test.\n")
    assert "it had the wrong currency" in last
    assert "agent-two" in last


def agents(printed: list[str]) -> None:
    listed, one, several, chat, asked, waiting, rescued, ended, back, environment = printed
    assert "scripted" in listed
    assert "1 file written." in one
    assert "agent:session-" in one
    assert "3 agents: 3 succeeded." in several
    assert chat.count("1 file written.") == 2
    assert "No agent asks you anything." in asked
    assert "The agent has made no list." in asked
    assert "1 file waits in the session" in waiting
    assert "1 file written." in waiting
    assert "written to rescued." in rescued
    assert "The session is deleted." in ended
    assert "The new session: contextbase chat " in back
    assert "The conversation went back with its files; 1 message taken back." in back
    assert "contextbase undo --run " in back
    assert "1 file written." in environment
    assert environment.rstrip().endswith("setup  none")


def sandboxes(printed: list[str]) -> None:
    _, one, piped, failed, many, limits, lasting, python = printed
    assert '"beds": 4' in one
    expected = ["agent", "/workspace", "garden.json", "plants.md", "agent"]
    found = [line for line in one.splitlines() if line in expected]  # what it complains of comes when it comes
    assert found == expected
    assert one.endswith("The workspace is completed, and its folder removed.\nexit code 7\n")
    assert piped.endswith("- beans\n- peas\n")
    assert "exit code 3\n" in failed
    assert "D  plants.md" in failed
    assert "8 agents: 8 succeeded." in many
    assert all(f'"bed {number}": "free"' in many for number in range(1, 9))
    assert limits.count("exit code 124\n") == 2
    assert "memory limit" in limits
    assert "Removed the sandbox." in lasting
    assert lasting.endswith("The workspace is completed, and its folder removed.\n")
    assert python.startswith("/workspace/deep\n")


def workspaces(printed: list[str]) -> None:
    _, _, run, python, joined, collided, refreshed, of_folder, refused, decided, ignored, held_back = printed
    assert "A  reports/currency.md\nM  shop.json\n" in run
    assert '+  "currency": "CHF",\n' in run
    assert "agent:accountant" in run.rpartition("folder removed.")[2]
    assert python == "written reports/again.md\n"
    assert joined == "True\n"
    assert "exit code 1: not everything is in\n# Plan\n\nWe launch in June.\n\nAnn and Ben lead.\n" in collided
    assert "plan.md" in collided.rpartition("lead.")[2]
    assert "notes.md" in refreshed.partition("\n")[2]
    assert "hours.md" in of_folder
    assert '"currency": "CHF"' in refused
    assert "you may only read there" in refused
    assert "exit code 1: the folder is kept\n" in refused
    assert refused.endswith("The workspace is completed, and its folder removed.\n")
    assert decided.endswith("replicas: 2\n")
    assert "!! a.log  (.gitignore:2: *.log)\n!! dist/  (.gitignore:1: dist/)\n" in ignored
    assert "A  kept.log\n" in ignored
    assert "'.env' looks like" in held_back
    assert "exit code 1: the folder is kept\n" in held_back
    assert held_back.endswith("The workspace is completed, and its folder removed.\n")


WHAT_IT_SAYS: dict[str, Callable[[list[str]], None]] = {
    "README.md": readme,
    "docs/tour.md": tour,
    "docs/guides/agents.md": agents,
    "docs/guides/sandboxes.md": sandboxes,
    "docs/guides/workspaces.md": workspaces,
}
