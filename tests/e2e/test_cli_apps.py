"""Apps from the command line."""

import io
import json
import sys
from uuid import uuid4

import pytest
from tests.support.cli import Cli
from tests.support.require import require_root
from tests.support.scripted_model import script

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def app(cb: Cli) -> str:
    name = f"app-{uuid4().hex[:8]}"
    made = cb("app", "init", name, "--title", "Helper")
    assert made.code == 0, made.stderr
    return name


def test_the_example_app_is_whole(cb: Cli, app: str) -> None:
    assert app in cb("app", "list").stdout
    shown = cb("app", "show", app, "--json").json
    assert (shown["title"], shown["visibility"]["roles"]) == ("Helper", ["member"])
    [manifest] = cb("manifest", "list", app, "--json").json["manifests"]
    assert manifest["runtime_version"] == "1"
    plan = cb("manifest", "plan", app, "--json").json["plan"]
    assert [entry["layer"] for entry in plan["entries"]] == [
        "registry_base",
        "session_overlay",
        "knowledge_overlay",
        "knowledge_overlay",
        "user_overlay",
    ]
    [base] = cb("kb", "list", app, "--json").json["knowledge_bases"]
    assert base["prefix"] == f"app/{app}/kb/handbook/"
    assert "style.md" in cb("ls", "kb/handbook", "--project", f"app-{app}").stdout
    effective = cb("agent-config", "effective", app, "--json").json["config"]
    assert (effective["skills"], list(effective["commands"])) == (["greeting"], ["greet"])
    assert "SKILL.md" in cb("ls", "registry/skills/greeting", "--project", f"app-{app}").stdout


@pytest.mark.parametrize(
    ("given", "typed"), [("./My App/", "my-app"), ("/srv/apps/notes", "notes"), ("Notes", "notes"), ("..", "my-app")]
)
@pytest.mark.parametrize("verb", ["init", "register"])
def test_whoever_gives_a_folder_is_told_what_to_type(cb: Cli, given: str, typed: str, verb: str) -> None:
    error = cb("app", verb, given, "--json").error
    assert error["code"] == "invalid_input"
    assert f"contextbase app {verb} {typed}" in error["message"]


def test_an_app_is_changed_shown_and_disabled(cb: Cli, app: str) -> None:
    assert cb("app", "set", app, "--disable", "--description", "Rests.").code == 0
    assert "disabled" in cb("app", "show", app).stdout
    assert "disabled" in cb("app", "list").stdout
    shown = cb("app", "visibility", app, "--department", "research", "--json").json["visibility"]
    assert shown == {"departments": ["research"], "roles": [], "members": []}
    assert "beta" in cb("app", "project", app, "--add", "beta").stdout


def test_configuration_secrets_and_knowledge_are_set(cb: Cli, app: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(text: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        done = cb(*arguments)
        assert done.code == 0, done.stderr
        return done.stdout

    sent(json.dumps({"limits": {"seconds": 60}}), "agent-config", "set", app, "user", "-")
    sent("very-secret\n", "agent-config", "seal", app, "user", "token")
    shown = cb("agent-config", "effective", app).stdout
    assert "limits.seconds = 60   (user)" in shown
    assert "system_prompt" in shown
    assert "seconds" in cb("agent-config", "show", app, "user").stdout
    listed = cb("agent-config", "secrets", app, "user").stdout
    assert "auth/token" in listed
    assert "very-secret" not in listed
    assert cb("agent-config", "unseal", app, "user", "token").code == 0
    assert cb("agent-config", "unseal", app, "user", "token", "--json").error["code"] == "not_found"
    assert cb("kb", "set", app, "user", "notes", "--tag", "mine").code == 0
    assert "notes" in cb("kb", "list", app, "--tag", "mine").stdout
    assert cb("kb", "remove", app, "user", "notes").code == 0


def test_a_manifest_is_published_and_compared(cb: Cli, app: str, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = json.loads(cb("manifest", "show", app, "--snake").stdout)
    manifest |= {"runtime_version": "2", "conflict_policy": "merge"}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(manifest)))
    assert "Published 2" in cb("manifest", "publish", app, "-").stdout
    compared = cb("manifest", "compare", app, "1", "2").stdout
    assert "conflict_policy" in compared
    assert "required_paths" not in compared


def test_an_agent_of_an_app_works_in_its_folder(cb: Cli, app: str) -> None:
    require_root()
    done = cb("agent", "--app", app, "--provider", "scripted", script({"tool": "read", "input": {"path": "TODO.md"}}))
    assert done.code == 0, done.stderr
    assert "read  TODO.md" in done.stderr
