"""Every command: JSON for programs, sentences and exit codes for errors, and no secret where it does not belong."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.postgres import reachable_folder
from tests.support.server import Done, ServerProcess, run_cli, start_server

from contextbase.interfaces.cli.main import main

pytestmark = pytest.mark.xdist_group("cli")

Cli = Callable[..., Done]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with reachable_folder() as folder, start_server(folder / "data", CONTEXTBASE_LOG_LEVEL="debug") as server:
        yield server


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, which is quicker; an exception that escapes fails the test."""
    for name in list(os.environ):
        if name.startswith("CONTEXTBASE_"):
            monkeypatch.delenv(name)

    def run(*arguments: str, **variables: str) -> Done:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["contextbase", *arguments])
            for name, value in variables.items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        written = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code=code or 0, stdout=written.out, stderr=written.err)

    return run


@pytest.fixture
def here(cli: Cli, server: ServerProcess) -> Cli:
    """A command about the running server."""
    return lambda *arguments, **variables: cli(*arguments, "--data", str(server.data), **variables)


def owner_token(server: ServerProcess) -> str:
    return (server.data / "owner-token").read_text().strip()


# JSON for programs


def test_status_and_login_tell_programs_where_the_server_is(here: Cli, server: ServerProcess) -> None:
    status = here("status", "--json").json
    assert (status["url"], status["status"], status["principal"]) == (server.url, "ready", "owner")
    assert list(status["machines"].values()) == ["running"]
    assert here("login", "--json").json["login_url"] == f"{server.url}/login?token={owner_token(server)}"


def test_a_projects_life_in_json(here: Cli) -> None:
    made = here("project", "create", "json-life", "--description", "x", "--json").json
    assert made["name"] == "json-life"
    assert "json-life" in [project["name"] for project in here("project", "list", "--json").json]
    assert here("project", "show", made["id"], "--json").json["files"] == 0
    assert here("project", "delete", "json-life", "--json").error["code"] == "invalid_input"
    assert here("project", "delete", "json-life", "--yes", "--json").json["id"] == made["id"]
    assert here("project", "show", "json-life", "--json").error["code"] == "not_found"


def test_a_tokens_life_in_json(here: Cli, server: ServerProcess) -> None:
    made = here("token", "create", "bot", "--allow", "read", "--days", "2", "--json").json
    assert made["actions"] == ["read"]
    listed = here("token", "list", "--json").json
    assert made["id"] in [token["id"] for token in listed]
    assert made["secret"] not in json.dumps(listed)
    as_bot = here("status", "--json", CONTEXTBASE_URL=server.url, CONTEXTBASE_TOKEN=made["secret"])
    assert as_bot.json["principal"] == "bot"
    assert here("token", "revoke", made["id"], "--json").json == {"id": made["id"], "revoked_now": True}
    assert here("token", "revoke", made["id"], "--json").json["revoked_now"] is False
    refused = here("status", "--json", CONTEXTBASE_URL=server.url, CONTEXTBASE_TOKEN=made["secret"])
    assert (refused.code, refused.error["code"]) == (1, "unauthenticated")


def test_config_in_json_lists_every_setting_and_unknown_variables(here: Cli) -> None:
    done = here("config", "--json", CONTEXTBASE_AUDIT_KEY="s" * 40, CONTEXTBASE_PROT="1")
    rows = {row["name"]: row for row in done.json["settings"]}
    assert rows["audit_key"]["value"] == "(set, hidden)"
    assert rows["port"]["variable"] == "CONTEXTBASE_PORT"
    assert done.json["unknown"] == ["CONTEXTBASE_PROT"]
    assert "s" * 40 not in done.stdout


def test_doctor_in_json_has_an_answer_for_every_part(here: Cli) -> None:
    findings = {finding["name"]: finding["answer"] for finding in here("doctor", "--json").json}
    parts = {"database", "data folder", "s3", "overlay", "reflink", "quota", "sandbox", "bubblewrap", "docker", "git"}
    assert set(findings) == {*parts, "machines", "sessions"}
    assert findings["database"] == "yes"


def test_maintenance_in_json_with_the_server_up(here: Cli) -> None:
    assert here("fsck", "--json").json == {"ok": True, "blobs": 0, "problems": []}
    assert here("gc", "--dry-run", "--json").json["blobs"] == 0
    assert here("db", "migrate", "--json").json == {"applied": []}
    assert here("db", "migrate", "--check", "--json").json == {"pending": []}


def test_every_command_is_documented_and_takes_json(cli: Cli) -> None:
    helps, waiting = {}, [""]
    while waiting:
        command = waiting.pop()
        helps[command] = re.sub(r"\x1b\[[0-9;]*m", "", cli(*command.split(), "--help").stdout)
        if "COMMAND [ARGS]" in helps[command]:
            names = re.findall(r"^│ ([a-z][a-z-]*) {2,}\S", helps.pop(command), re.MULTILINE)
            assert names, command
            waiting += [f"{command} {name}".strip() for name in names]
    commands = helps.keys()
    assert {"up", "status", "login", "doctor", "config", "fsck", "gc", "project create", "db migrate"} <= commands
    assert {"ls", "cat", "put", "rm", "mv", "log", "audit", "policy explain", "policy group add"} <= commands
    assert {"diff", "blame", "undo", "bring-back", "tag create", "review resolve", "backup verify"} <= commands
    assert {"lease acquire", "lease release", "lease list", "lease run", "policy leases"} <= commands
    shells = {"db shell", "sandbox shell", "session shell"}
    assert {command for command, text in helps.items() if "--json" not in text} == shells


# Sentences for people


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_an_output_that_has_not_every_character_is_no_obstacle(tmp_path: Path, encoding: str) -> None:
    name = os.fsdecode(b"n\xc3\xa4me \xe4\xb8\xad not utf-8: \xff")
    done = run_cli("doctor", "--data", str(tmp_path / name), PYTHONIOENCODING=encoding)
    assert (done.code, done.stderr) == (0, "")
    assert "data folder" in done.stdout


def test_people_get_sentences_and_tables(here: Cli, server: ServerProcess) -> None:
    assert "for-people" in here("project", "create", "for-people").stdout
    assert "for-people" in here("project", "list").stdout
    assert "head      commit 0" in here("project", "show", "for-people").stdout
    assert re.search(r"^cb_[\w-]{43}$", here("token", "create", "person", "--kind", "user").stdout, re.MULTILINE)
    assert "user:person" in here("token", "list").stdout.replace("\n", " ")
    assert "ready" in here("status").stdout
    assert "No problems found" in here("fsck").stdout
    assert "CONTEXTBASE_PORT = 8787" in here("config").stdout
    assert server.url in here("login").stdout


def test_an_error_for_people_has_the_sentence_and_the_code(here: Cli) -> None:
    done = here("project", "show", "none")
    assert (done.code, done.stdout) == (1, "")
    assert "There is no project 'none'. [not_found]" in done.stderr


def test_markup_in_names_is_not_obeyed(here: Cli) -> None:
    here("project", "create", "markup", "--description", "[red]not red[/] [/]")
    assert "[red]not red[/] [/]" in here("project", "show", "markup").stdout


def test_the_version_is_printed(cli: Cli) -> None:
    assert re.fullmatch(r"contextbase \d+\.\d+\S*\n", cli("--version").stdout)


# Bad input

BAD_ARGUMENTS: list[list[str]] = [
    ["project", "create", ""],
    ["project", "create", "UPPER"],
    ["project", "create", "../x"],
    ["project", "create", "a" * 101],
    ["project", "create", "a\nb"],
    ["project", "create", "\udcff"],
    ["project", "create", "x", "--description", "x" * 5000],
    ["project", "create", "x", "--description", "\udcff"],
    ["project", "show", ""],
    ["project", "show", "a/b"],
    ["project", "show", "kept?x"],
    ["project", "show", "kept#x"],
    ["project", "show", ".."],
    ["project", "show", "%2e%2e"],
    ["project", "show", "\udcff"],
    ["project", "show", "x" * 200],
    ["project", "delete", "kept?x", "--yes"],
    ["project", "delete", "kept"],
    ["project", "create"],
    ["project", "nope"],
    ["token", "create", ""],
    ["token", "create", "a b"],
    ["token", "create", "x", "--kind", "system"],
    ["token", "create", "x", "--kind", "god"],
    ["token", "create", "x", "--allow", "root"],
    ["token", "create", "x", "--days", "0"],
    ["token", "create", "x", "--days", "-1"],
    ["token", "create", "x", "--days", "nan"],
    ["token", "create", "x", "--days", "inf"],
    ["token", "create", "x", "--days", "many"],
    ["token", "create", "x", "--path", "a"],
    ["token", "create", "x", "--project", "kept", "--path", "../a"],
    ["token", "create", "x", "--project", "a\nb"],
    ["token", "create", "x", "--name", "\x07"],
    ["token", "revoke", "nope"],
    ["token", "revoke", ""],
    ["up", "--port", "-1"],
    ["up", "--port", "65536"],
    ["up", "--port", "http"],
    ["up", "--host", "h" * 254],
    ["up", "--host", "é" * 70],
    ["up", "--host", ""],
    ["gc", "--grace-hours", "-1"],
    ["gc", "--grace-hours", "nan"],
    ["gc", "--grace-hours", "inf"],
    ["gc", "--grace-hours", "1e300"],
    ["fsck", "--nope"],
    ["nope"],
    ["config", "--data", "/dev/null/x"],
    ["status", "--data", "x" * 5000],
]

BAD_VARIABLES: list[tuple[str, str]] = [
    ("CONTEXTBASE_PORT", "http"),
    ("CONTEXTBASE_DATABASE_URL", "mysql://root:hunter2@db/x"),
    ("CONTEXTBASE_DATABASE_URL", "postgresql://[hunter2"),
    ("CONTEXTBASE_AUDIT_KEY", "hunter2"),
    ("CONTEXTBASE_BLOBS", "ftp://x"),
    ("CONTEXTBASE_CONFIG", "/no/such/file.toml"),
    ("CONTEXTBASE_GC_GRACE_HOURS", "inf"),
    ("CONTEXTBASE_LOG_LEVEL", "loud"),
    ("CONTEXTBASE_URL", "server.example"),
    ("CONTEXTBASE_URL", "http://"),
    ("CONTEXTBASE_URL", "http://a b\x7f"),
    ("CONTEXTBASE_URL", "http://["),
    ("CONTEXTBASE_URL", "http://server:port"),
    ("CONTEXTBASE_URL", "http://server:999999"),
    ("CONTEXTBASE_SERVER", "unheard-of"),
    ("CONTEXTBASE_TOKEN", "tökén"),
    ("CONTEXTBASE_TOKEN", "a\nb"),
]


@pytest.fixture(scope="module")
def kept(server: ServerProcess) -> str:
    """A project that a misread name might hit."""
    assert run_cli("project", "create", "kept", "--data", str(server.data)).code == 0
    return "kept"


def assert_refused(done: Done) -> dict[str, Any]:
    assert (done.code, done.stdout) == (2, ""), done
    assert "Traceback" not in done.stderr
    error = done.error
    assert error["code"] in ("invalid_input", "invalid_path", "invalid_settings")
    assert len(error["message"]) > 10
    return error


@pytest.mark.parametrize(
    "arguments", BAD_ARGUMENTS, ids=lambda arguments: " ".join(arguments)[:50].encode("ascii", "replace").decode()
)
def test_a_bad_argument_is_exit_code_2_with_a_code_and_a_sentence(
    cli: Cli, server: ServerProcess, kept: str, arguments: list[str]
) -> None:
    data = [] if "--data" in arguments else ["--data", str(server.data)]
    assert_refused(cli(*arguments, *data, "--json"))
    assert cli("project", "show", kept, "--data", str(server.data)).code == 0


@pytest.mark.parametrize(("name", "value"), BAD_VARIABLES)
def test_a_bad_variable_is_exit_code_2_and_its_value_stays_secret(here: Cli, name: str, value: str) -> None:
    variables = {name: value}
    if name == "CONTEXTBASE_URL":
        variables["CONTEXTBASE_TOKEN"] = "cb_x"
    command = "status" if name in ("CONTEXTBASE_URL", "CONTEXTBASE_TOKEN", "CONTEXTBASE_SERVER") else "config"
    done = here(command, "--json", **variables)
    assert_refused(done)
    assert "hunter2" not in done.stderr


def test_without_json_a_bad_argument_is_exit_code_2_too(here: Cli) -> None:
    for arguments in (["token", "revoke", "nope"], ["project", "create", "UPPER"], ["nope"]):
        done = here(*arguments)
        assert done.code == 2
        assert "Traceback" not in done.stderr


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(exclude_characters="\x00"), max_size=20))
def test_whatever_a_project_is_called_the_answer_is_an_exit_code(cli: Cli, server: ServerProcess, name: str) -> None:
    done = cli("project", "show", "--data", str(server.data), "--json", "--", name)
    assert done.code in (1, 2), name
    assert done.error["code"] in ("invalid_input", "not_found")


def test_without_a_server_a_command_says_how_to_start_one(cli: Cli, tmp_path: Path) -> None:
    for command in (["status"], ["login"], ["project", "list"], ["token", "list"]):
        done = cli(*command, "--data", str(tmp_path / "none"), "--json")
        assert (done.code, done.error["code"]) == (1, "unavailable")
        assert "contextbase up" in done.error["message"]
    assert not (tmp_path / "none").exists()


def test_an_unreachable_server_is_unavailable(cli: Cli, tmp_path: Path) -> None:
    variables = {"CONTEXTBASE_URL": "http://127.0.0.1:9", "CONTEXTBASE_TOKEN": "cb_x"}
    done = cli("status", "--data", str(tmp_path), "--json", **variables)
    assert (done.code, done.error["code"]) == (1, "unavailable")


def test_a_url_without_a_token_says_what_is_missing(cli: Cli, tmp_path: Path) -> None:
    done = cli("status", "--data", str(tmp_path), "--json", CONTEXTBASE_URL="http://127.0.0.1:9")
    assert (done.code, done.error["code"]) == (1, "unauthenticated")
    assert "CONTEXTBASE_TOKEN" in done.error["message"]


# Secrets


def test_no_secret_is_in_the_log_or_on_any_command_line(here: Cli, server: ServerProcess) -> None:
    secrets = {owner_token(server), "cb_" + "w" * 43}
    made = here("token", "create", "secretive", "--json").json
    secrets.add(made["secret"])
    for secret in secrets:
        httpx.get(f"{server.url}/login", params={"token": secret})
        httpx.get(f"{server.url}/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
        httpx.get(f"{server.url}/", cookies={"contextbase_login": secret})
        httpx.post(f"{server.url}/api/v1/projects", content=b"{", headers={"Authorization": f"Bearer {secret}"})
    here("token", "revoke", made["id"], "--json")
    here("token", "revoke", str(uuid4()), "--json")
    family = [psutil.Process(server.process.pid), *psutil.Process(server.process.pid).children(recursive=True)]
    command_lines = "\n".join(" ".join(process.cmdline()) for process in family)
    log = server.log.read_text()
    assert '"path": "/login"' in log
    assert set(re.findall(r"cb_[\w-]{20,}", log + command_lines)) == set()


def test_log_lines_are_json_with_a_trace_id_for_each_request(server: ServerProcess) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    answer = httpx.get(f"{server.url}/nowhere", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert answer.headers["x-trace-id"] == trace
    httpx.get(f"{server.url}/healthz")  # the line is written after the answer, but before the next one
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert [line["path"] for line in lines if line["trace_id"] == trace and line["message"] == "request"] == [
        "/nowhere"
    ]
