"""`contextbase backup` and `restore` as an operator uses them: from a running server to another data folder."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.postgres import reachable_folder
from tests.support.server import Done, ServerProcess, run_cli, start_server

from contextbase.sdk import Client

pytestmark = pytest.mark.xdist_group("cli")

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
LARGE = b"0123456789abcdef" * 40_000


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with reachable_folder() as folder, start_server(folder / "data") as server:
        (folder / "large.bin").write_bytes(LARGE)
        assert here(server, "project", "create", "notes").code == 0
        assert here(server, "put", str(folder / "large.bin"), "large.bin", "-p", "notes").code == 0
        (folder / "launch.md").write_text("on Monday\n")
        assert here(server, "put", str(folder / "launch.md"), "plans/launch.md", "-p", "notes").code == 0
        yield server


def token_of(server: ServerProcess) -> str:
    return (server.data / "owner-token").read_text().strip()


def here(server: ServerProcess, *arguments: str) -> Done:
    return run_cli(*arguments, "--data", str(server.data))


def test_an_operator_backs_up_a_running_server_and_restores_it_elsewhere(server: ServerProcess, tmp_path: Path) -> None:
    target = tmp_path / "backups"
    made = here(server, "backup", "create", str(target), "--json").json
    assert (made["new_blobs"], made["new_bytes"], made["damaged"]) == (1, len(LARGE), [])
    assert [project["name"] for project in made["projects"]] == ["notes"]
    again = here(server, "backup", "create", str(target))
    assert again.code == 0, again.stderr
    assert "1 project" in again.stdout
    assert "0 bytes are new" in again.stdout
    listed = run_cli("backup", "list", str(target), "--json").json
    assert listed[0]["snapshot"] == made["snapshot"]
    assert len(listed) == 2
    assert made["snapshot"] in run_cli("backup", "list", str(target)).stdout
    assert run_cli("backup", "verify", str(target), "--json").json["ok"]
    assert "No problems found" in run_cli("backup", "verify", str(target), "--snapshot", made["snapshot"]).stdout
    with reachable_folder() as folder:
        done = run_cli("restore", str(target), "--data", str(folder / "data"), "--json").json
        assert (done["ok"], done["checked"], done["rows"]) == (True, True, listed[1]["rows"])
        refused = run_cli("restore", str(target), "--data", str(folder / "data"), "--json")
        assert (refused.code, refused.error["code"]) == (1, "conflict")
        with start_server(folder / "data") as copy, Client(copy.url, token_of(copy)) as client:
            assert b"".join(client.download("notes", path="large.bin")) == LARGE
            assert str(client.projects.get("notes").epoch) != made["projects"][0]["epoch"]
            bring_back_as_documented(old=copy, live=server)


def bring_back_as_documented(*, old: ServerProcess, live: ServerProcess) -> None:
    """docs/operations.md says how to get a folder of one project back from a restored copy."""
    here(live, "rm", "plans/launch.md", "-p", "notes")
    [example] = re.findall(r"```python\n(.*?)```", OPERATIONS.read_text(encoding="utf-8"), re.DOTALL)
    for documented, real in (("http://127.0.0.1:8899", old.url), ("http://127.0.0.1:8787", live.url)):
        assert documented in example
        example = example.replace(documented, real)
    exec(example, {"OLD_TOKEN": token_of(old), "TOKEN": token_of(live)})  # noqa: S102 - our own docs
    assert here(live, "cat", "plans/launch.md", "-p", "notes").stdout == "on Monday\n"


def test_a_restore_does_not_touch_the_folder_of_a_running_server(server: ServerProcess, tmp_path: Path) -> None:
    assert here(server, "backup", "create", str(tmp_path / "one.tar")).code == 0
    refused = here(server, "restore", str(tmp_path / "one.tar"))
    assert refused.code == 1
    assert "Stop it first" in refused.stderr.replace("\n", " ")


def test_a_damaged_backup_is_named_and_exits_1(server: ServerProcess, tmp_path: Path) -> None:
    target = tmp_path / "one.tar"
    assert here(server, "backup", "create", str(target)).code == 0
    content = bytearray(target.read_bytes())
    content[content.index(LARGE[:64]) + 70_000] ^= 1
    target.write_bytes(content)
    verified = run_cli("backup", "verify", str(target), "--json")
    assert (verified.code, verified.json["ok"], len(verified.json["problems"])) == (1, False, 1)
    assert "1 problem " in run_cli("backup", "verify", str(target)).stdout
    target.write_bytes(content[:-5000])
    cut = run_cli("backup", "verify", str(target), "--json")
    assert cut.code == 1
    assert "cut short" in cut.error["message"]


@pytest.mark.parametrize("command", [("backup", "verify"), ("backup", "list"), ("restore",)])
def test_a_backup_that_is_not_there_is_said(command: tuple[str, ...], tmp_path: Path) -> None:
    with reachable_folder() as folder:
        data = ("--data", str(folder / "data")) if command == ("restore",) else ()
        done = run_cli(*command, str(tmp_path / "nowhere"), *data, "--json")
        assert (done.code, done.error["code"]) == (1, "not_found")
        assert not (folder / "data").exists()


def test_a_restore_refuses_a_folder_with_files_of_somebody_else(server: ServerProcess, tmp_path: Path) -> None:
    assert run_cli("backup", "create", str(tmp_path / "backups"), "--data", str(server.data)).code == 0
    with reachable_folder() as folder:
        target = folder / "data"
        target.mkdir()
        (target / "holiday.jpg").write_bytes(b"")
        (target / "contextbase.toml").write_text('log_level = "error"\n')
        arguments = ("restore", str(tmp_path / "backups"), "--data", str(target), "--json")
        refused = run_cli(*arguments)
        assert (refused.code, refused.error["code"]) == (1, "conflict")
        assert "'holiday.jpg'" in refused.error["message"]
        assert sorted(entry.name for entry in target.iterdir()) == ["contextbase.toml", "holiday.jpg"]
        (target / "holiday.jpg").unlink()
        assert run_cli(*arguments).code == 0
