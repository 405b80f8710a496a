"""An agent's folder from the command line, and from Python on the same machine."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.server import ServerProcess

from contextbase.sdk import Client

pytestmark = pytest.mark.xdist_group("cli")

PLAN = "# Plan\n\nWe launch in May.\n\nAnn leads.\n\nBen tests.\n"


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def shared(cb: Cli, tmp_path: Path) -> Cli:
    """The command line, about a project with a plan."""
    (tmp_path / "plan.md").write_text(PLAN)
    assert cb("put", str(tmp_path / "plan.md"), "plan.md").code == 0
    return cb


def edit(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


def test_create_prints_the_path_and_nothing_else(shared: Cli) -> None:
    made = shared("workspace", "create", "--agent", "one")
    assert (made.code, made.stderr) == (0, "")
    script = f"cd {shlex.quote(made.stdout.rstrip())} && cat plan.md"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == PLAN
    assert shared("workspace", "path", "--agent", "one").stdout == made.stdout
    listed = shared("workspace", "list").stdout
    assert "agent:one" in listed
    assert os.environ["CONTEXTBASE_PROJECT"] in listed


def test_the_audit_trail_shows_on_whose_behalf_an_agent_works(shared: Cli) -> None:
    shared("workspace", "create", "-a", "one")
    [row] = [line for line in shared("audit").stdout.splitlines() if "workspace.create" in line]
    assert "agent:one for user:owner" in row


def test_create_of_a_folder_shows_that_folder_alone(shared: Cli) -> None:
    (Path(shared("workspace", "create", "-a", "whole").stdout.rstrip()) / "docs").mkdir()
    (Path(shared("workspace", "path", "-a", "whole").stdout.rstrip()) / "docs" / "a.md").write_text("a\n")
    assert shared("workspace", "complete", "-a", "whole").code == 0
    made = shared("workspace", "create", "-a", "clerk", "--folder", "docs/")
    folder = Path(made.stdout.rstrip())
    assert [file.name for file in folder.iterdir()] == ["a.md"]
    (folder / "a.md").write_text("b\n")
    assert shared("workspace", "commit", "-a", "clerk", "--refresh").code == 0
    assert shared("workspace", "complete", "-a", "clerk").code == 0
    assert shared("cat", "docs/a.md").stdout == "b\n"


def test_create_at_a_snapshot_shows_the_files_of_then(shared: Cli) -> None:
    then = shared("log", "--json", "-n", "1").json[0]["seq"]
    shared("rm", "plan.md")
    made = shared("workspace", "create", "-a", "late", "--at", str(then))
    assert (Path(made.stdout.rstrip()) / "plan.md").read_text() == PLAN
    assert shared("workspace", "create", "-a", "none", "--at", "no-such-tag").code != 0


def test_refresh_shows_what_came_in_and_what_is_kept(shared: Cli) -> None:
    folder = Path(shared("workspace", "create", "-a", "long").stdout.rstrip())
    edit(folder / "plan.md", "May", "July")
    other = Path(shared("workspace", "create", "-a", "quick").stdout.rstrip())
    edit(other / "plan.md", "May", "June")
    (other / "new.md").write_text("new\n")
    assert shared("workspace", "complete", "-a", "quick").code == 0
    refreshed = shared("workspace", "refresh", "-a", "long")
    assert (refreshed.code, refreshed.stdout.splitlines()[:2]) == (
        0,
        ["arrived    A new.md", "kept         plan.md: You and others changed it, and there is no clean merge."],
    )
    assert (folder / "new.md").read_text() == "new\n"
    assert shared("workspace", "refresh", "-a", "long", "--json").json["kept"][0]["code"] == "conflict"
    committed = shared("workspace", "commit", "-a", "long", "--refresh")
    assert committed.code == 1
    assert "arrived    M plan.md" in committed.stdout
    assert "up to date" in shared("workspace", "refresh", "-a", "long").stdout


def test_credentials_are_held_back_until_they_are_allowed_and_the_folder_stays(shared: Cli) -> None:
    folder = Path(shared("workspace", "create", "-a", "one").stdout.rstrip())
    (folder / ".env").write_text("PASSWORD=1")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "a.log").write_text("1")
    [ignored] = shared("workspace", "status", "-a", "one", "--json").json["ignored"]
    assert ignored == {"path": "a.log", "source": ".gitignore", "line": 1, "pattern": "*.log"}
    status = shared("workspace", "status", "-a", "one").stdout
    assert "X  .env: '.env' looks like a file of environment variables" in status
    assert "!! a.log  (.gitignore:1: *.log)" in status
    kept = shared("workspace", "complete", "-a", "one")
    assert (kept.code, "The folder is kept" in kept.stdout, "--allow .env" in kept.stdout) == (1, True, True)
    assert (folder / ".env").read_text() == "PASSWORD=1"
    assert shared("workspace", "complete", "-a", "one", "--allow", ".env").code == 0
    assert shared("cat", ".env").stdout == "PASSWORD=1"
    assert not folder.exists()


def test_status_looks_like_git_s_and_completing_says_what_was_written_merged_and_contested(shared: Cli) -> None:
    one, two = (Path(shared("workspace", "create", "-a", name).stdout.rstrip()) for name in ("one", "two"))
    edit(one / "plan.md", "May", "June")
    edit(two / "plan.md", "May", "July")
    (two / "new.md").write_text("new\n")
    (two / ".git").mkdir()
    os.mkfifo(two / "pipe")
    heading, *lines = shared("workspace", "status", "-a", "two").stdout.splitlines()
    assert heading == f"## agent:two, at snapshot 1: {two}"
    assert lines[:2] == ["A  new.md", "M  plan.md"]
    assert lines[2].startswith("X  pipe: ")
    assert lines[3:] == ["!! .git/  (built-in: .git)"]
    assert "-We launch in May.\n+We launch in July.\n" in shared("workspace", "diff", "plan.md", "-a", "two").stdout
    done = shared("workspace", "complete", "-a", "one", "-m", "June")
    assert done.code == 0, done.stdout
    assert done.stdout == "written    M plan.md\nCommit 2.\nThe workspace is completed, and its folder removed.\n"
    kept = shared("workspace", "complete", "-a", "two", "-m", "July")
    assert kept.code == 1
    assert "written    A new.md\n" in kept.stdout
    assert "in review  M plan.md  decide with: contextbase review show " in kept.stdout
    assert f"The folder is kept: {two}\n" in kept.stdout
    (two / "pipe").unlink()
    again = shared("workspace", "complete", "-a", "two")
    assert (again.code, two.exists()) == (0, False)


def test_a_refused_version_is_named_and_found(shared: Cli) -> None:
    folder = Path(shared("workspace", "create", "-a", "three").stdout.rstrip())
    assert shared("policy", "set", "agent:three", "plan.md", "R").code == 0
    edit(folder / "plan.md", "May", "June")
    done = shared("workspace", "commit", "-a", "three")
    assert done.code == 1
    refused, where, *_ = done.stdout.splitlines()
    assert refused.startswith("refused    M plan.md  ")
    assert "June" in Path(where.partition("your version: ")[2]).read_text()
    assert (folder / "plan.md").read_text() == PLAN
    assert shared("workspace", "abandon", "-a", "three", "--json").error["code"] == "invalid_input"
    assert shared("workspace", "complete", "-a", "three").code == 1
    discarded = shared("workspace", "complete", "-a", "three", "--discard", "--json")
    assert (discarded.code, discarded.json["removed"]) == (0, True)


def test_abandoning_asks_only_when_there_is_something_to_lose(shared: Cli) -> None:
    folder = Path(shared("workspace", "create", "-a", "four").stdout.rstrip())
    (folder / "new.md").write_text("new\n")
    refused = shared("workspace", "abandon", "-a", "four", "--json")
    assert (refused.code, refused.error["code"], folder.is_dir()) == (2, "invalid_input", True)
    (folder / "new.md").unlink()
    assert shared("workspace", "abandon", "-a", "four").code == 0
    assert not folder.exists()
    assert shared("workspace", "status", "-a", "four").code == 1
    assert shared("workspace", "list", "--state", "abandoned", "--json").json[0]["agent"] == "agent:four"


def client_of(server: ServerProcess) -> Client:
    return Client(server.url, (server.data / "owner-token").read_text().strip())


@pytest.mark.usefixtures("shared")
def test_a_block_in_python_is_completed_at_its_end(server: ServerProcess) -> None:
    project = os.environ["CONTEXTBASE_PROJECT"]
    with client_of(server) as client:
        with client.workspaces.open(project, agent="five", message="by five") as workspace:
            edit(workspace.path / "plan.md", "May", "June")
            assert workspace.completed is None
        assert workspace.completed is not None
        assert [change.status for change in workspace.completed.changes] == ["written"]
        assert not workspace.path.exists()
        assert client.log(project).commits[0].author.message == "by five"


def fail_half_way(folder: Path) -> None:
    edit(folder / "plan.md", "May", "June")
    raise ZeroDivisionError


@pytest.mark.usefixtures("shared")
def test_a_block_that_raises_leaves_the_work_where_it_is_and_says_so(server: ServerProcess) -> None:
    project = os.environ["CONTEXTBASE_PROJECT"]
    with client_of(server) as client:
        with (
            pytest.raises(ZeroDivisionError) as caught,
            client.workspaces.open(project, agent="six") as workspace,
        ):
            fail_half_way(workspace.path)
        assert str(workspace.path) in caught.value.__notes__[0]
        assert [change.path for change in client.workspaces.status(project, agent="six").changes] == ["plan.md"]
        with client.workspaces.open(project, agent="six") as workspace:
            assert "June" in (workspace.path / "plan.md").read_text()
        assert workspace.completed is not None
        assert workspace.completed.removed


def test_an_interrupted_block_leaves_the_client_usable(server: ServerProcess, shared: Cli) -> None:
    project = os.environ["CONTEXTBASE_PROJECT"]
    with client_of(server) as client:
        with pytest.raises(KeyboardInterrupt), client.workspaces.open(project, agent="seven"):
            raise KeyboardInterrupt
        assert client.workspaces.abandon(project, agent="seven").state == "abandoned"
    assert shared("workspace", "list", "--json").json == []
