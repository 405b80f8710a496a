"""Commands of agents from the command line."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.require import require_program, require_root
from tests.support.server import Done, ServerProcess

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(autouse=True)
def sandboxes() -> None:
    require_root()
    require_program("bwrap", "apt-get install bubblewrap")


def test_what_could_not_be_committed_is_told_with_the_name_of_the_agent_that_has_it(cb: Cli) -> None:
    done = cb("run", "--", "sh", "-c", "mkfifo pipe; echo new > new.txt")
    assert done.code == 1, done.stderr
    named = re.search(r"contextbase workspace status\|complete\|abandon --agent (run-\w+)", done.stderr)
    assert named is not None, done.stderr
    assert "pipe" in cb("workspace", "status", "--agent", named[1]).stdout
    assert cb("workspace", "complete", "--agent", named[1], "--discard").code == 0


def test_a_command_in_a_folder_of_the_project_sees_that_folder_alone(cb: Cli) -> None:
    assert cb("run", "--", "sh", "-c", "mkdir docs; echo a > docs/a.md; echo top > top.txt").code == 0
    done = cb("run", "--folder", "docs", "--", "sh", "-c", "ls; echo b > b.md")
    assert (done.code, done.stdout) == (0, "a.md\n"), done.stderr
    assert cb("cat", "docs/b.md").stdout == "b\n"


def with_input(given: str | bytes, *arguments: str) -> Done:
    program = Path(sys.executable).with_name("contextbase")
    data = given.encode() if isinstance(given, str) else given
    done = subprocess.run([program, *arguments], input=data, capture_output=True, timeout=60, check=False)
    return Done(code=done.returncode, stdout=done.stdout.decode(), stderr=done.stderr.decode())


@pytest.mark.usefixtures("cb")
def test_a_command_reads_what_is_piped_to_it_when_asked_to() -> None:
    assert with_input("häh\n", "run", "--stdin", "-", "--", "cat").stdout == "häh\n"
    assert with_input("x\n", "run", "--stdin", "-", "--json", "--", "cat").json["stdout"] == "x\n"
    box = with_input("", "sandbox", "create", "--agent", "visitor").stdout.strip()
    assert with_input("x\n", "sandbox", "exec", "--stdin", "-", box, "--", "cat").stdout == "x\n"
    assert with_input("x\n", "sandbox", "exec", "-i", box, "--", "tr", "x", "y").stdout == "y\n"
    assert with_input("x\n", "sandbox", "exec", "-i", "--json", box, "--", "cat").error["code"] == "invalid_input"
    assert with_input("x\n", "sandbox", "exec", "--stdin", "-", "--json", box, "--", "cat").json["stdout"] == "x\n"


def test_each_of_many_agents_reads_the_same(cb: Cli, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text("same\n")
    save = 'cat > "$CONTEXTBASE_RUN_INDEX.txt"'
    assert cb("run", "-n", "2", "--stdin", str(file), "--", "sh", "-c", save).code == 0
    assert [cb("cat", f"{number}.txt").stdout for number in (1, 2)] == ["same\n"] * 2


@pytest.mark.usefixtures("cb")
def test_standard_input_that_nobody_asked_for_is_not_waited_for() -> None:
    command = [Path(sys.executable).with_name("contextbase"), "run", "--", "cat"]
    reading, silent = os.pipe()
    try:
        done = subprocess.run(command, stdin=reading, capture_output=True, timeout=60, check=False)
    finally:
        os.close(reading)
        os.close(silent)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("given", "why"),
    [(b"\xff\n", "UTF-8"), (b"x" * ((8 << 20) + 1), "8 MB"), (b"\x01" * (8 << 20), "8388608 bytes")],
    ids=["not UTF-8", "too long", "too long as JSON"],
)
def test_input_that_cannot_be_sent_is_refused_before_anything_runs(cb: Cli, given: bytes, why: str) -> None:
    done = with_input(given, "run", "--stdin", "-", "--", "touch", "begun")
    assert done.code in (1, 2)
    assert why in done.stderr
    assert cb("workspace", "list", "--state", "all", "--json").json == []


def test_input_from_nowhere_is_an_error(cb: Cli) -> None:
    done = cb("run", "--stdin", "no/such/file", "--", "cat")
    assert (done.code, "cannot be read" in done.stderr) == (2, True)


@contextmanager
def interrupted(*arguments: str, after: str) -> Iterator[subprocess.Popen[str]]:
    """The command, stopped by Ctrl-C when `after` is a line of its output."""
    command = [Path(sys.executable).with_name("contextbase"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == f"{after}\n"
        running.send_signal(signal.SIGINT)
        yield running


def test_who_interrupts_a_command_is_told_where_its_work_is(cb: Cli) -> None:
    with interrupted("run", "--", "sh", "-c", "echo x > n.txt; echo begun; sleep 600", after="begun") as running:
        _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    named = re.search(r"contextbase workspace status\|complete\|abandon --agent (run-\w+)", told)
    assert named is not None, told
    for _ in range(100):
        completed = cb("workspace", "complete", "--agent", named[1])
        if completed.code == 0:
            break
        time.sleep(0.1)
    assert completed.code == 0, completed.stderr
    assert cb("cat", "n.txt").stdout == "x\n"


def test_who_interrupts_many_is_told_which_of_them_came_to_no_end(cb: Cli) -> None:
    script = "echo x > n.txt; sleep 600"
    command = [Path(sys.executable).with_name("contextbase"), "run", "-n", "2", "-a", "two", "--", "sh", "-c", script]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        for _ in range(300):
            if all("n.txt" in cb("workspace", "status", "--agent", f"two-{number}").stdout for number in (1, 2)):
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    for number in (1, 2):
        assert f"two-{number}: did not finish" in told


def test_of_twenty_agents_on_one_line_those_that_are_not_in_wait_for_a_person(cb: Cli) -> None:
    script = "sleep 2; echo $CONTEXTBASE_RUN_INDEX > line.txt; echo mine > own-$CONTEXTBASE_RUN_INDEX.txt"
    done = cb("run", "-n", "20", "--agent", "many", "--json", "--", "sh", "-c", script)
    assert done.code == 1, done.stderr
    changes: Counter[str] = Counter()
    for one in done.json:
        assert one["error"] is None
        changes.update(one["changes"])
    assert set(changes) == {"written", "in_review"}
    assert changes.total() == 40
    assert [one["went_well"] for one in done.json].count(False) == changes["in_review"]
    assert len(cb("review", "list", "--json").json) == changes["in_review"]


def test_a_token_that_may_not_run_commands_is_refused_once_for_all_agents(cb: Cli, server: ServerProcess) -> None:
    token = cb("token", "create", "lone", "--project", os.environ["CONTEXTBASE_PROJECT"], "--json").json["secret"]
    variables = {"CONTEXTBASE_URL": server.url, "CONTEXTBASE_TOKEN": token}
    done = cb("run", "-n", "20", "--", "true", **variables)
    assert done.code == 1
    assert done.stderr.count("error:") == 1
    assert len(done.stderr.strip().splitlines()) == 1
    told = cb("run", "-n", "20", "--json", "--", "true", **variables)
    assert (told.code, told.stdout, told.error["code"]) == (1, "", "forbidden")


def test_of_several_agents_it_is_said_what_ran_and_what_became_of_their_changes(cb: Cli) -> None:
    script = "sleep 2; echo $CONTEXTBASE_RUN_INDEX > line.txt"
    told = cb("run", "-n", "3", "--agent", "some", "--", "sh", "-c", script).stderr
    assert "3 agents: 3 succeeded.\nChanges: 1 written, 2 waiting for review.\n" in told, told
    failed = cb("run", "--count", "2", "--agent", "bad", "--", "sh", "-c", "exit $CONTEXTBASE_RUN_INDEX").stderr
    assert "2 agents: 2 failed.\nNothing was committed.\n" in failed, failed
