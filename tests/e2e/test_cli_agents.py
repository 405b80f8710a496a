"""Agents from the command line: one task, conversations, and sessions. The built-in model follows scripts."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.require import require_program, require_root

pytestmark = [pytest.mark.xdist_group("cli"), pytest.mark.timeout(600)]

Steps = list[dict[str, object]]

WRITES: Steps = [
    {"text": "I write."},
    {"tool": "write", "input": {"path": "a.txt", "content": "hello\n"}},
    {"text": "Done."},
]
SLEEPS: Steps = [
    {"text": "I begin."},
    {"tool": "bash", "input": {"command": "echo x > begun.txt; sleep 900"}},
    {"text": "Never said."},
]


@pytest.fixture(autouse=True)
def sandboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    require_root()
    require_program("bwrap", "apt-get install bubblewrap")
    monkeypatch.setenv("COLUMNS", "200")


def script(steps: Steps) -> str:
    return f"Follow this.\n```script\n{json.dumps(steps)}\n```\n"


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """What a person types into a pipe; a message of several lines has backslashes at their ends."""
    given = "".join(line.rstrip("\n").replace("\n", "\\\n") + "\n" for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))


def session_of(cb: Cli) -> dict[str, object]:
    """The newest."""
    found: dict[str, object] = cb("session", "list", "--json").json[0]
    return found


@contextmanager
def started(*arguments: str, given: str = "") -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, for Ctrl-C."""
    command = [Path(sys.executable).with_name("contextbase"), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as running:
        assert running.stdin is not None
        running.stdin.write(given)
        running.stdin.flush()
        try:
            yield running
        finally:
            running.kill()


def until(running: subprocess.Popen[str], line: str) -> None:
    assert running.stdout is not None
    for said in running.stdout:
        if said.strip() == line:
            return
    raise AssertionError(f"{line!r} was not said")


def test_a_task_is_done_told_and_landed(cb: Cli) -> None:
    done = cb("agent", script(WRITES))
    assert done.code == 0, done.stderr
    assert done.stdout == "I write.\nDone.\n"
    assert "✓ write  a.txt" in done.stderr
    assert "1 file written." in done.stderr
    assert cb("cat", "a.txt").stdout == "hello\n"
    assert session_of(cb)["state"] == "closed"


def test_a_session_is_kept_open_for_whoever_wants_to_go_on(cb: Cli) -> None:
    done = cb("agent", "--keep", "--json", script(WRITES))
    assert done.code == 0, done.stderr
    assert done.json["run"]["landed"]["counts"] == {"written": 1}
    assert (session_of(cb)["id"], session_of(cb)["state"]) == (done.json["session"]["id"], "open")


def test_a_task_is_read_from_standard_input(cb: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(script(WRITES).encode())))
    assert cb("agent", "-").stdout == "I write.\nDone.\n"
    assert cb("agent", " ", "--json").error["code"] == "invalid_input"


def test_several_agents_work_side_by_side(cb: Cli) -> None:
    done = cb("agent", "-n", "3", script(WRITES))
    assert done.code == 0, done.stderr
    assert "3 agents: 3 succeeded. 1 file written, 2 already there." in done.stderr
    runs = cb("agent", "-n", "2", "--json", script([{"text": "Nothing to do."}])).json
    assert [one["run"]["landed"]["state"] for one in runs] == ["nothing"] * 2


def test_a_run_that_fails_is_told_with_its_reason_and_keeps_its_work(cb: Cli) -> None:
    steps = [
        {"tool": "write", "input": {"path": "half.txt", "content": "x\n"}},
        {"error": {"status": 400, "message": "no more"}},
    ]
    done = cb("agent", script(steps))
    assert done.code == 1
    assert "Failed:" in done.stderr
    assert "1 file waits in the session" in done.stderr
    assert cb("cat", "half.txt").code == 1
    session = str(session_of(cb)["id"])
    assert f"contextbase chat {session[-8:]}" in done.stderr
    assert cb("session", "land", session[-8:]).code == 0
    assert cb("cat", "half.txt").stdout == "x\n"


def test_work_that_waits_for_a_decision_lands_or_is_thrown_away(cb: Cli) -> None:
    kept = cb("agent", "--land", "after_review", "--json", script(WRITES))
    assert kept.code == 0, kept.stderr
    session = kept.json["session"]["id"]
    assert cb("cat", "a.txt").code == 1
    shown = cb("session", "show", session).stdout
    assert "1 file waits in the session" in shown
    assert "running" in shown
    thrown = cb("session", "discard", session)
    assert (thrown.code, "1 file thrown away." in thrown.stdout) == (0, True), thrown.stderr
    assert cb("session", "land", session).stdout == "No file was changed.\n"
    assert cb("cat", "a.txt").code == 1


def test_what_cannot_land_makes_the_command_fail(cb: Cli) -> None:
    assert cb("policy", "set", "everyone", "locked/**", "R").code == 0
    path = {"path": "locked/a.txt", "content": "x\n"}
    done = cb("agent", script([{"tool": "write", "input": path}, {"text": "Done."}]))
    assert done.code == 1, done.stderr
    assert "1 file refused" in done.stderr


def test_files_that_the_project_does_not_take_are_rescued(cb: Cli, tmp_path: Path) -> None:
    leak = {"path": ".env", "content": "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"}
    done = cb("agent", "--keep", script([{"tool": "write", "input": leak}, *WRITES]))
    assert done.code == 1
    assert "1 file held back" in done.stderr
    session = str(session_of(cb)["id"])
    rescued = cb("session", "rescue", session, str(tmp_path / "new"))
    assert rescued.code == 0, rescued.stderr
    assert (tmp_path / "new" / ".env").read_text() == leak["content"]
    assert not (tmp_path / "new" / "a.txt").exists()
    assert cb("session", "rescue", session, str(tmp_path / "new"), "--json").error["code"] == "invalid_input"


def test_who_interrupts_a_task_is_told_that_it_is_canceled(cb: Cli) -> None:
    with started("agent", script(SLEEPS)) as running:
        until(running, "I begin.")
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "Canceled 1 run." in told
    named = re.search(r"contextbase session show (\w+)", told)
    assert named is not None, told
    run = cb("session", "show", named[1], "--json").json["runs"][0]
    assert run["cancel_requested_at"] is not None


def test_a_conversation_in_a_pipe_goes_on_when_it_is_named(cb: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, script(WRITES), "/status")
    first = cb("chat")
    assert first.code == 0, first.stderr
    assert first.stdout == "I write.\nDone.\n"
    assert "1 file written." in first.stderr
    named = re.search(r"The session stays: contextbase chat (\w+)", first.stderr)
    assert named is not None
    typed(monkeypatch, script([{"tool": "bash", "input": {"command": "cat a.txt >&2; exit 3"}}, {"text": "Again."}]))
    second = cb("chat", named[1])
    assert second.stdout == "Again.\n"
    assert "Done." in second.stderr  # what was said last
    assert "✗ bash" in second.stderr
    said = cb("session", "messages", named[1]).stdout
    assert said.index("I write.") < said.index("Again.")
    assert len(cb("session", "show", named[1], "--json").json["runs"]) == 2


def test_a_conversation_in_which_nothing_is_said_leaves_no_session(cb: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "/help", "/nonsense", "/quit", "never read")
    done = cb("chat")
    assert done.code == 0
    assert "/discard" in done.stderr
    assert cb("session", "list", "--project", os.environ["CONTEXTBASE_PROJECT"], "--json").json == []


def test_the_events_of_a_conversation_are_lines_of_json(cb: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, script(WRITES))
    lines = [json.loads(line) for line in cb("chat", "--json").stdout.splitlines()]
    assert lines[-1]["type"] == "end"
    assert lines[-1]["run"]["state"] == "succeeded"
    assert "tool.end" in [line.get("kind") for line in lines]


def test_a_person_decides_in_the_conversation(cb: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, script(WRITES), "/land")
    done = cb("chat", "--land", "never")
    assert "1 file waits in the session" in done.stderr
    assert "1 file written." in done.stderr
    assert cb("cat", "a.txt").stdout == "hello\n"


def test_a_conversation_goes_back_and_forks(cb: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, script(WRITES), "/fork", "/rewind files", "/rewind", "/rewind 9", script([{"text": "Else."}]))
    done = cb("chat", "--land", "never")
    assert "You are in the new session " in done.stderr
    assert "The conversation went back with its files; 1 message taken back." in done.stderr
    assert done.stdout == "I write.\nDone.\nElse.\n"
    assert done.stderr.count("has no message") == 2
    [forked, first] = cb("session", "list", "--project", os.environ["CONTEXTBASE_PROJECT"], "--json").json[:2]
    assert forked["forked_from"] == first["id"]
    assert "Else." in cb("session", "messages", forked["id"]).stdout
    assert "I write." not in cb("session", "messages", forked["id"]).stdout
    assert "I write." in cb("session", "messages", first["id"]).stdout


@pytest.mark.usefixtures("cb")
def test_ctrl_c_stops_an_answer_and_the_conversation_goes_on() -> None:
    message = script(SLEEPS).strip().replace("\n", "\\\n") + "\n"
    with started("chat", given=message) as running:
        until(running, "I begin.")
        running.send_signal(signal.SIGINT)
        said, told = running.communicate("/status\n", timeout=120)
    assert running.returncode == 0, told
    assert "The run was canceled." in told
    assert "1 file waits in the session" in told
    assert "Never said." not in said


def test_an_agent_cannot_command_the_terminal(cb: Cli) -> None:
    done = cb("agent", script([{"text": "\x1b]0;owned\x07 \x1b[2J"}]))
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b]0;owned" in done.stdout


def test_sessions_are_pinned_stopped_closed_and_deleted(cb: Cli) -> None:
    session = cb("agent", "--keep", "--json", script(WRITES)).json["session"]["id"]
    assert cb("session", "pin", session, "--json").json["pinned"] is True
    assert cb("session", "unpin", session, "--json").json["pinned"] is False
    assert cb("session", "stop", session).code == 0
    assert cb("session", "close", session, "--json").json["state"] == "closed"
    assert cb("session", "delete", session, "--json").error["code"] == "invalid_input"
    assert cb("session", "delete", session, "--yes").code == 0
    assert cb("session", "show", session, "--json").error["code"] == "not_found"
    assert cb("cat", "a.txt").stdout == "hello\n"


def test_agent_programs_are_listed_with_how_to_install_them(cb: Cli) -> None:
    listed = cb("agents", "--json").json
    assert "scripted" in [each["name"] for each in listed["agents"]]
    shown = cb("agents").stdout
    missing = [each["name"] for each in listed["agents"] if not each["is_installed"]]
    assert all(f"{name}: " in shown for name in missing)
    assert cb("agent", "x", "--provider", "nobody", "--json").error["code"] == "invalid_input"


ASKS: Steps = [
    {"tool": "ask", "input": {"question": "Which colour?", "options": ["Blue", "Red"]}},
    {"tool": "todo", "input": {"todos": [{"content": "Paint it", "status": "doing"}]}},
    {"text": "I paint."},
]


def test_a_question_is_shown_and_answered_in_the_conversation(cb: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, script(ASKS), "2")
    done = cb("chat")
    assert done.code == 0, done.stderr
    assert "? Which colour?" in done.stderr
    assert "  2  Red" in done.stderr
    assert done.stdout == "I paint.\n"
    [asked] = [one for one in cb("session", "questions", "--all", "--json").json if one["prompt"] == "Which colour?"]
    assert asked["response"]["answer"] == {"values": ["Red"]}
    session = str(session_of(cb)["id"])
    assert cb("session", "todos", session).stdout == "[>] Paint it\n"


def test_a_person_who_left_answers_later_and_permits_a_change_they_see(
    cb: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, script([WRITES[1], {"text": "I paint."}]))
    done = cb("chat", "--profile", "ask")
    assert done.code == 0, done.stderr
    session = str(session_of(cb)["id"])
    assert f"contextbase session answer {session[-8:]}" in done.stderr
    assert session[-8:] in cb("session", "questions").stdout
    assert "+hello" in cb("session", "answer", session).stdout
    assert cb("session", "answer", session, "perhaps", "--json").error["code"] == "invalid_input"
    assert cb("session", "answer", session, "deny", "not", "now").code == 0
    typed(monkeypatch)
    shown = cb("chat", session)
    assert "I paint." in shown.stdout + shown.stderr  # as it is said, or what was said last
    assert cb("cat", "a.txt").code == 1
    assert cb("session", "answer", session, "--json").error["code"] == "not_found"
