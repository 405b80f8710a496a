"""`contextbase worker …`, as a user runs it: no server, no database."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.server import Done

from contextbase.interfaces.cli.main import main


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    return folder


@pytest.fixture
def worker(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Cli:
    """Runs `contextbase worker …` in the base folder, with sandboxes in the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(base)

    def run(*arguments: str) -> Done:
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["contextbase", "worker", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capfdbinary.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code=code or 0, stdout=written.out.decode(), stderr=written.err.decode())

    return run


def names(worker: Callable[..., Done]) -> list[str]:
    return [item["worker_id"] for item in json.loads(worker("list", "--json").stdout)]


def test_a_command_works_on_a_copy_and_its_changes_come_back(worker: Cli, base: Path) -> None:
    done = worker("run", "one", "--copy", "*.txt", "--", "sh", "-c", "echo said; echo b >> a.txt; echo n > n.txt")
    assert (done.code, done.stdout) == (0, "said\n")
    assert "success   a.txt (written)" in done.stderr
    assert (base / "a.txt").read_text() == "a\nb\n"
    assert (base / "n.txt").read_text() == "n\n"
    assert names(worker) == []


def test_a_failed_command_leaves_the_base_alone_and_its_sandbox_to_look_at(worker: Cli, base: Path) -> None:
    done = worker("run", "one", "--copy", "a.txt", "--", "sh", "-c", "echo b > a.txt; exit 3")
    assert done.code == 1
    assert "exit code 3" in done.stderr
    assert (base / "a.txt").read_text() == "a\n"
    assert names(worker) == ["one"]
    refused = worker("clean", "one")
    assert (refused.code, "a.txt" in refused.stderr) == (1, True)
    assert worker("sync", "one").code == 0
    assert (base / "a.txt").read_text() == "b\n"
    assert worker("clean", "one").code == 0
    assert names(worker) == []


def test_a_name_with_a_newline_fakes_no_line(worker: Cli) -> None:
    done = worker("run", "one", "--", "sh", "-c", "echo x > 'a\nsuccess   fake.txt (written)'")
    refused = worker("clean", "one")
    assert (done.code, refused.code) == (1, 1)
    assert "fake.txt" in done.stderr
    assert "fake.txt" in refused.stderr
    assert not re.search("^success   fake", done.stderr + refused.stderr, re.MULTILINE)


def test_json_says_all_there_is(worker: Cli, base: Path) -> None:
    command = ["sh", "-c", f"echo theirs > {base}/a.txt; echo mine > a.txt; echo out; echo err >&2"]
    done = worker("run", "one", "--json", "--copy", "a.txt", "--", *command)
    answer = json.loads(done.stdout)
    assert done.code == 1
    assert (answer["run"]["exit_code"], answer["run"]["stdout"], answer["run"]["stderr"]) == (0, "out\n", "err\n")
    (conflict,) = answer["sync"]["conflicts"]
    assert (base / conflict["kept_at"]).read_text() == "mine\n"
    assert json.loads(worker("sync", "one", "--json").stdout)["conflicts"] == [conflict]


def test_a_limit_is_named_when_it_is_gone_over(worker: Cli) -> None:
    done = worker("run", "one", "--seconds", "0.2", "--", "sleep", "300")
    assert done.code == 1
    assert "execution-time" in done.stderr


@pytest.mark.parametrize("asked", [["--copy", "nope*"], ["--env", "MISSING"]])
def test_what_comes_to_nothing_leaves_no_sandbox(worker: Cli, asked: list[str]) -> None:
    assert worker("run", "one", *asked, "--", "true").code != 0
    assert names(worker) == []


def test_a_sandbox_that_was_there_stays_when_the_next_run_comes_to_nothing(worker: Cli) -> None:
    assert worker("run", "one", "--keep", "--", "mkdir", "node_modules").code == 0
    assert worker("run", "one", "--copy", "nope*", "--", "true").code == 1
    assert worker("run", "one", "--keep", "--", "ls").stdout == "node_modules\n"


def test_a_sandbox_that_stays_is_told_with_its_place(worker: Cli, base: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "home/.contextbase/sandbox/one/files")
    assert place in worker("run", "one", "--keep", "--", "true").stderr
    assert json.loads(worker("run", "one", "--json", "--", "false").stdout)["sandbox"] == place
    conflicting = f"echo theirs > {base}/a.txt; echo mine > a.txt"
    assert place in worker("run", "one", "--copy", "a.txt", "--", "sh", "-c", conflicting).stderr
    worker("clean", "one", "--discard")
    assert json.loads(worker("run", "one", "--json", "--", "true").stdout)["sandbox"] is None


def test_who_interrupts_a_command_is_told_where_its_work_is(worker: Cli, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("contextbase")
    command = [program, "worker", "run", "one", "--", "sh", "-c", "echo x > n.txt; echo begun; sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert str(tmp_path / "home/.contextbase/sandbox/one/files") in told
    assert worker("sync", "one").code == 0


def test_variables_are_passed_on_by_name_or_value(worker: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    command = ["--", "sh", "-c", "echo $MY_KEY $OTHER"]
    assert worker("run", "one", *command).stdout == "\n"
    assert worker("run", "one", "--env", "MY_KEY", "--env", "OTHER=x", *command).stdout == "secret x\n"
    assert worker("run", "one", "--env", "MISSING", *command).code == 2


def test_finished_sandboxes_go_by_default_and_others_when_asked_for(worker: Cli) -> None:
    assert worker("run", "kept", "--keep", "--", "true").code == 0
    assert worker("run", "failed", "--", "sh", "-c", "echo x > new.txt; false").code == 1
    assert worker("clean").stdout == "Removed 0 sandboxes.\n"
    cleaned = json.loads(worker("clean", "--all", "--json").stdout)
    assert (cleaned["removed"], list(cleaned["kept"])) == (["kept"], ["failed"])
    assert worker("clean", "--all", "--discard").code == 0
    assert worker("list").stdout.strip() == "There are no sandboxes."


def test_what_is_wrong_is_said_with_a_way_out(worker: Cli) -> None:
    assert "worker list" in worker("sync", "nobody").stderr
    assert worker("run", "a/b", "--", "true").code == 2
    assert worker("run", "one", "--base", "nowhere", "--", "true").code == 2
    assert worker("clean", "one", "--all").code == 2
    missing = worker("run", "one", "--copy", "missing.txt", "--json", "--", "true")
    assert json.loads(missing.stderr)["error"]["code"] == "not_found"
