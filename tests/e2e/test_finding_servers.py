"""How commands find their server: from any folder, inside workspaces, by name, and never by what an agent wrote."""

import asyncio
import fcntl
import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.postgres import reachable_folder
from tests.support.run_world import remove_sandboxes
from tests.support.server import Done, ServerProcess, processes_in, run_cli, start_server
from tests.support.workspaces import unmount_all

from contextbase.sdk import Client

pytestmark = pytest.mark.xdist_group("cli")


@dataclass(frozen=True, kw_only=True)
class Account:
    """What an account keeps, a server it runs, and a folder it is in that is nobody's."""

    state: Path
    server: ServerProcess
    elsewhere: Path

    def run(self, *arguments: str, cwd: Path | None = None, stdin: str = "", **variables: str) -> Done:
        return run_cli(*arguments, cwd=cwd or self.elsewhere, stdin=stdin, XDG_STATE_HOME=str(self.state), **variables)

    @property
    def name(self) -> str:
        return self.server.url.removeprefix("http://")

    @property
    def owner_token(self) -> str:
        return (self.server.data / "owner-token").read_text().strip()

    def files(self) -> list[Path]:
        return sorted(path for path in self.state.rglob("*") if path.is_file() and path.name != "lock")


@contextmanager
def account_in(folder: Path) -> Iterator[Account]:
    (folder / "elsewhere").mkdir()
    state = folder / "state"
    try:
        with start_server(folder / "data", XDG_STATE_HOME=str(state)) as server:
            yield Account(state=state, server=server, elsewhere=folder / "elsewhere")
    finally:
        asyncio.run(remove_sandboxes(folder / "data"))
        unmount_all(folder)


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with reachable_folder() as folder, account_in(folder) as account:
        assert account.run("project", "create", "notes").code == 0
        assert account.run("put", "-", "plan.md", "-p", "notes", stdin="# Plan\n").code == 0
        yield account


def test_a_started_server_is_found_from_any_folder(account: Account) -> None:
    assert account.run("status", "--json").json["url"] == account.server.url
    listed = account.run("servers", "--json").json
    assert listed == [
        {
            "name": account.name,
            "url": account.server.url,
            "kind": "running",
            "data": str(account.server.data),
            "default": True,
        }
    ]
    assert account.name in account.run("servers").stdout
    assert account.run("fsck", "--json").json["ok"]
    assert str(account.server.data) in account.run("doctor").stdout


def test_python_finds_the_same_server(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(account.state))
    monkeypatch.chdir(account.elsewhere)
    with Client() as client:
        assert client.me().is_owner


def completed(account: Account, line: str, **where: Path) -> list[str]:
    """What bash would offer at the end of a line."""
    asked = {"_CONTEXTBASE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return account.run(cwd=where.get("cwd"), **asked).stdout.split()


def test_a_shell_completes_what_the_server_has_that_the_command_would_find(account: Account) -> None:
    folder = Path(account.run("workspace", "create", "-p", "notes", "--agent", "typing").stdout.strip())
    assert completed(account, "contextbase cat pl", cwd=folder) == ["plan.md"]
    assert completed(account, "contextbase ls -p no") == ["notes"]
    assert completed(account, f"contextbase ls --server {account.name} -p no") == ["notes"]
    assert completed(account, "contextbase ls --server nobody -p no") == []


def test_what_is_kept_about_servers_is_for_this_account_alone_and_holds_no_owner_token(account: Account) -> None:
    for file in account.files():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert account.owner_token not in file.read_text()
    for folder in (account.state / "contextbase", account.state / "contextbase" / "running"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_in_a_workspace_commands_are_about_its_project_and_its_agent(account: Account) -> None:
    folder = Path(account.run("workspace", "create", "-p", "notes", "--agent", "one").stdout.strip())
    (folder / "deep").mkdir()
    (folder / "deep" / "new.md").write_text("new\n")
    for here in (folder, folder / "deep"):
        assert "plan.md" in account.run("ls", cwd=here).stdout
        status = account.run("workspace", "status", "--json", cwd=here).json
        assert status["workspace"]["agent"] == "agent:one"
        assert [change["path"] for change in status["changes"]] == ["deep/new.md"]
    assert account.run("workspace", "commit", "-m", "new", cwd=folder).code == 0
    assert "agent:one" in account.run("log", cwd=folder).stdout
    assert account.run("workspace", "complete", "-p", "notes", "--agent", "one").code == 0


def test_in_a_workspace_a_project_that_is_named_is_not_joined_with_the_folders_agent(account: Account) -> None:
    assert account.run("project", "create", "other").code == 0
    folder = Path(account.run("workspace", "create", "-p", "notes", "--agent", "two").stdout.strip())
    assert account.run("workspace", "create", "-p", "other", "--agent", "two").code == 0
    same = account.run("workspace", "status", "-p", "notes", "--json", cwd=folder).json
    assert same["workspace"]["agent"] == "agent:two"
    refused = account.run("workspace", "status", "-p", "other", "--json", cwd=folder)
    assert refused.error["code"] == "not_found"  # the owner's own workspace, which there is not
    for project in ("notes", "other"):
        assert account.run("workspace", "abandon", "-p", project, "--agent", "two", "--yes").code == 0


def test_what_looks_like_a_data_folder_in_a_workspace_is_not_believed(account: Account) -> None:
    folder = Path(account.run("workspace", "create", "-p", "notes", "--agent", "liar").stdout.strip())
    trap = folder / ".contextbase-data"
    trap.mkdir()
    (trap / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:9", "process_id": os.getpid()}))
    (trap / "owner-token").write_text("cb_trap\n")
    (trap / "contextbase.toml").write_text('log_level = "trapped"\n')
    with (trap / "lock").open("w") as lock:
        lock.write(str(os.getpid()))
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert account.run("status", "--json", cwd=folder).json["url"] == account.server.url
        assert account.run("fsck", "--json", cwd=folder).json["ok"]
    assert account.run("workspace", "abandon", "-p", "notes", "--agent", "liar", "--yes").code == 0


def test_of_several_servers_one_must_be_named(account: Account) -> None:
    with reachable_folder() as folder, start_server(folder / "data", XDG_STATE_HOME=str(account.state)) as other:
        for command in ("status", "fsck"):
            asked = account.run(command, "--json")
            assert (asked.code, asked.error["code"]) == (2, "invalid_input")
            assert account.name in asked.error["message"]
            assert str(other.data) in asked.error["message"]
        assert account.run("status", "--json", "--server", account.name).json["url"] == account.server.url
        assert account.run("status", "--json", CONTEXTBASE_SERVER=account.name).json["url"] == account.server.url
        assert account.run("status", "--json", "--data", str(other.data)).json["url"] == other.url
        assert account.run("fsck", "--json", CONTEXTBASE_SERVER=account.name).json["ok"]
        folder_of_one = account.run("workspace", "create", "-p", "notes", "-a", "near", "--server", account.name)
        near = Path(folder_of_one.stdout.strip())
        assert account.run("status", "--json", cwd=near).json["url"] == account.server.url
        done = account.run("workspace", "abandon", "--yes", "-p", "notes", "-a", "near", "--server", account.name)
        assert done.code == 0, done.stderr
        assert other.stop(signal.SIGTERM) == 0
    assert account.run("status", "--json").json["url"] == account.server.url


def test_a_server_that_was_killed_is_not_found_any_more() -> None:
    with reachable_folder() as folder, account_in(folder) as account:
        assert len(account.files()) == 1
        account.server.process.kill()
        account.server.process.wait(60)
        for process in processes_in(account.server.data):
            process.kill()
        assert account.run("servers", "--json").json == []
        done = account.run("status", "--json")
        assert (done.code, done.error["code"]) == (1, "unavailable")
        with start_server(folder / "other", XDG_STATE_HOME=str(account.state)) as other:
            assert len(account.files()) == 1  # of the other
            assert account.run("status", "--json").json["url"] == other.url
            assert other.stop(signal.SIGTERM) == 0
        assert account.files() == []


def test_an_error_names_every_place_that_was_looked_at(tmp_path: Path) -> None:
    done = run_cli("status", "--json", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert (done.code, done.error["code"]) == (1, "unavailable")
    for place in ("CONTEXTBASE_URL", "CONTEXTBASE_SERVER", "data folder", "workspace", "login", "contextbase up"):
        assert place in done.error["message"]
    assert not (tmp_path / "state").exists()


def test_a_login_is_checked_kept_privately_and_forgotten(account: Account, tmp_path: Path) -> None:
    reader = account.run("token", "create", "reader", "--json").json["secret"]

    def elsewhere(*arguments: str, stdin: str = "", **variables: str) -> Done:
        return run_cli(*arguments, cwd=tmp_path, stdin=stdin, XDG_STATE_HOME=str(tmp_path / "state"), **variables)

    wrong = elsewhere("login", account.server.url, "--token-stdin", "--json", stdin="cb_wrong\n")
    assert (wrong.code, wrong.error["code"]) == (1, "unauthenticated")
    assert elsewhere("servers", "--json").json == []
    no_terminal = elsewhere("login", account.server.url, "--json")
    assert (no_terminal.code, no_terminal.error["code"]) == (2, "invalid_input")

    stored = elsewhere("login", account.server.url, "--name", "work", "--token-stdin", "--json", stdin=reader + "\n")
    assert stored.json == {"name": "work", "url": account.server.url, "principal": "reader", "default": True}
    file = tmp_path / "state" / "contextbase" / "logins" / "work.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert elsewhere("status", "--json").json["principal"] == "reader"

    owner = elsewhere("login", account.server.url, "--token-stdin", stdin=account.owner_token + "\n")
    assert (owner.code, account.owner_token in owner.stdout + owner.stderr) == (0, False)
    assert elsewhere("status", "--json").json["principal"] == "reader"
    assert elsewhere("status", "--json", "--server", account.name).json["principal"] == "owner"
    assert elsewhere("status", "--json", CONTEXTBASE_SERVER=account.name).json["principal"] == "owner"
    listed = elsewhere("servers", "--json")
    assert [(row["name"], row["default"]) for row in listed.json] == [(account.name, False), ("work", True)]
    assert reader not in listed.stdout

    with_token = elsewhere("status", "--json", CONTEXTBASE_TOKEN=account.owner_token)
    assert with_token.error["code"] == "unavailable"  # a token for another server is not sent to the default one
    assert elsewhere("logout", "work").code == 0
    assert not file.exists()
    assert elsewhere("logout", "work", "--json").error["code"] == "not_found"
    assert elsewhere("status", "--json").error["code"] == "unavailable"


@pytest.mark.parametrize("name", ["", "../up", "a/b", "-x", "a\nb", "x" * 101])
def test_a_login_name_that_is_not_one_is_refused_and_stores_nothing(
    account: Account, tmp_path: Path, name: str
) -> None:
    arguments = ["login", account.server.url, f"--name={name}", "--token-stdin", "--json"]
    done = run_cli(*arguments, cwd=tmp_path, stdin=account.owner_token, XDG_STATE_HOME=str(tmp_path / "state"))
    if name:
        assert (done.code, done.error["code"]) == (2, "invalid_input")
        assert not list(tmp_path.rglob("*.json"))
    else:
        assert done.json["name"] == account.name
