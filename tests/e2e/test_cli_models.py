"""Models and ways out from the command line."""

import io
import sys

import pytest
from tests.support.cli import Cli

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_a_service_is_connected_tested_and_disconnected_and_its_key_never_shown(
    cb: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "demonstration" in cb("model", "list").stdout
    connect = ("model", "connect", "local", "--protocol", "openai", "--url", "http://127.0.0.1:1")
    monkeypatch.setattr(sys, "stdin", io.StringIO("sk-very-secret\n"))
    added = cb(*connect, "--key-stdin")
    assert added.code == 0, added.stderr
    assert cb(*connect, "--no-key", "--json").error["code"] == "conflict"
    listed = cb("model", "list")
    assert "local" in listed.stdout
    assert "sealed" in listed.stdout
    tested = cb("model", "test", "local")
    assert tested.code == 1
    assert "sk-very" not in added.stdout + listed.stdout + tested.stdout + tested.stderr
    assert cb("model", "disconnect", "local").code == 0
    assert cb("model", "disconnect", "local", "--json").error["code"] == "not_found"


def test_models_are_listed_with_roles_and_prices(cb: Cli) -> None:
    added = cb("model", "add", "my/model", "--protocol", "openai", "--role", "small", "--prices", "3,15", "--json")
    assert added.json["prices"] == {
        "input": 3_000_000,
        "output": 15_000_000,
        "cache_read": 3_000_000,
        "cache_write": 3_000_000,
    }
    assert cb("model", "list", "--json").json["models"] == [added.json]
    assert cb("model", "add", "x", "--protocol", "openai", "--prices", "3").code == 2
    assert cb("model", "remove", "my/model").code == 0
    assert cb("model", "list", "--json").json["models"] == []


def test_budgets_are_set_and_shown(cb: Cli) -> None:
    budgets = cb("model", "budget", "--user", "owner", "--monthly", "12.5", "--json").json
    assert [(each["subject"], each["monthly_limit"]) for each in budgets] == [("user:owner", 12_500_000)]
    assert "12.50" in cb("model", "budget").stdout
    assert cb("model", "budget", "--user", "owner").code == 2
    assert cb("model", "budget", "--user", "owner", "--unlimited", "--json").json == []


def test_usage_is_shown_by_what_was_asked(cb: Cli) -> None:
    assert cb("model", "usage", "--by", "day", "--since", "2026-01-01", "--json").json == []
    assert "No agent asked" in cb("model", "usage").stdout
    assert cb("model", "usage", "--since", "2026-02-01", "--until", "2026-01-01").code == 2


def test_hosts_are_allowed_and_taken_back(cb: Cli) -> None:
    assert cb("project", "create", "egress-test").code == 0
    assert cb("project", "egress", "egress-test", "--json").json == []
    allowed = cb("project", "egress", "egress-test", "--allow", "preset:pip", "--allow", "*.Example.com", "--json")
    assert allowed.json == ["*.example.com", "preset:pip"]
    assert cb("project", "egress", "egress-test", "--allow", "no host", "--json").error["code"] == "invalid_input"
    assert cb("project", "egress", "egress-test", "--disallow", "preset:pip", "--json").json == ["*.example.com"]
