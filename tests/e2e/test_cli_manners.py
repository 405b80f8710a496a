"""How commands behave in a terminal: closed pipes, Ctrl-C, narrow windows, short ids, progress, completion."""

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.proxy import Misbehaviour, misbehaving_proxy
from tests.support.server import PROGRAM, ServerProcess, environment
from typer.main import get_command

from contextbase.interfaces.cli.main import app

pytestmark = pytest.mark.xdist_group("cli")

LONGEST = 60


def variables(server: ServerProcess, **more: str) -> dict[str, str]:
    usual = {
        "CONTEXTBASE_DATA": str(server.data),
        "CONTEXTBASE_PROJECT": os.environ.get("CONTEXTBASE_PROJECT", "none"),
    }
    return environment(**usual | more)


def started(server: ServerProcess, *arguments: str, more: dict[str, str] | None = None, **streams: Any) -> Popen[bytes]:
    """A command that Ctrl-C reaches, also if whoever runs the tests ignores it, as background jobs of a shell do."""
    return Popen(
        [PROGRAM, *arguments],
        env=variables(server, **more or {}),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - short
        **streams,
    )


def in_terminal(server: ServerProcess, *arguments: str, columns: int = 80) -> str:
    """What a command shows on a terminal with this many columns."""
    ours, theirs = pty.openpty()
    look = {"COLUMNS": str(columns), "LINES": "50", "PAGER": "cat", "TERM": "xterm"}
    process = started(server, *arguments, more=look, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    ends = time.monotonic() + LONGEST
    try:
        while time.monotonic() < ends:
            if not select.select([ours], [], [], 0.5)[0]:
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError:  # nobody has the other end open
                break
            shown += piece
        assert process.wait(LONGEST) is not None
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode(errors="replace")).replace("\r\n", "\n")


# Closed pipes


def test_a_reader_that_stops_early_gets_no_traceback(cb: Cli, server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"line\n" * 200_000)
    assert cb("put", str(tmp_path / "big"), "big.txt").code == 0
    for arguments in (["cat", "big.txt"], ["ls"], ["ls", "--json"], ["log"], ["token", "list"], ["config"]):
        reading, writing = os.pipe()
        os.close(reading)  # as `head` does that has seen enough, and surely before anything is written
        done = subprocess.run(
            [PROGRAM, *arguments], stdout=writing, stderr=subprocess.PIPE, env=variables(server), timeout=LONGEST,
            check=False,
        )  # fmt: skip
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b""), arguments


# Ctrl-C


def test_ctrl_c_is_one_line_and_exit_code_130(cb: Cli, server: ServerProcess) -> None:
    assert cb("put", "/etc/hostname", "a").code == 0
    with started(server, "watch", "--after", "start", stdout=PIPE, stderr=PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=LONGEST)
    assert (running.returncode, told) == (130, b"Interrupted.\n")


async def test_an_interrupted_import_says_how_much_went_in(cb: Cli, server: ServerProcess, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(1500):
        (folder / f"{number:04}").write_text(f"{number}")
    commits, second = 0, asyncio.Event()

    def hold_up(data: bytes) -> bytes:
        """The second commit never reaches the server."""
        nonlocal commits
        commits += data.count(b"POST /api/v1/commits")
        if commits > 1:
            second.set()
            return b""
        return data

    token = (server.data / "owner-token").read_text().strip()
    async with misbehaving_proxy(server.url, Misbehaviour(alter_request=hold_up)) as url:
        more = {"CONTEXTBASE_URL": url, "CONTEXTBASE_TOKEN": token}
        with started(server, "import", str(folder), more=more, stdout=PIPE, stderr=PIPE) as running:
            async with asyncio.timeout(LONGEST):
                await second.wait()
            running.send_signal(signal.SIGINT)
            _, told = await asyncio.to_thread(running.communicate, timeout=LONGEST)
    assert running.returncode == 130
    assert "\nInterrupted. 1,000 of 1,500 changes went in." in told.decode()
    assert cb("log", "--json").json[0]["change_count"] == 1000


def test_an_interrupted_put_says_that_nothing_was_committed(cb: Cli, server: ServerProcess) -> None:
    with started(server, "put", "-", "never.txt", stdin=PIPE, stderr=PIPE) as running:
        assert running.stdin is not None
        running.stdin.write(b"x" * (3 << 20))  # it has read most of it when this returns, and waits for more
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        assert running.wait(LONGEST) == 130
        assert running.stderr is not None
        assert running.stderr.read() == b"Interrupted. Nothing was committed.\n"
        running.stdin.close()
    assert cb("log", "--json").json == []


# Narrow windows


@pytest.mark.parametrize("columns", [80, 120])
def test_ids_in_tables_are_whole_and_lines_fit(cb: Cli, server: ServerProcess, columns: int) -> None:
    names = ("the nightly indexer of all the documents", "x" * 60)
    made = [cb("token", "create", "indexer-of-documents", "--name", name, "--json").json["id"] for name in names]
    shown = in_terminal(server, "token", "list", columns=columns)
    for each in made:
        assert each[-8:] in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns
    assert "nightly" in shown


def test_a_table_in_a_pipe_has_one_line_for_each_row(cb: Cli) -> None:
    name = "a long description " * 10
    assert cb("project", "create", "described", "--description", name.strip()).code == 0
    line = next(line for line in cb("project", "list", COLUMNS="80").stdout.splitlines() if "described" in line)
    assert name.strip() in line
    assert cb("project", "delete", "described", "--yes").code == 0


# Short ids


def test_the_start_or_end_of_an_id_is_enough(cb: Cli) -> None:
    made = cb("token", "create", "short", "--json").json["id"]
    assert cb("token", "revoke", made[-8:], "--json").json["id"] == made
    assert cb("token", "revoke", made[:30], "--json").json["id"] == made
    project = cb("project", "list", "--json").json[0]
    assert cb("project", "show", project["id"][-12:], "--json").json["name"] == project["name"]


def test_an_ambiguous_id_lists_the_candidates(cb: Cli) -> None:
    made = [cb("token", "create", f"twin-{number}", "--json").json["id"] for number in (1, 2)]
    alike = made[0][:6]  # they begin with the time
    assert made[1].startswith(alike)
    done = cb("token", "revoke", alike, "--json")
    assert (done.code, done.error["code"]) == (2, "invalid_input")
    assert set(made) <= set(done.error["details"]["candidates"])
    told = cb("token", "revoke", alike).stderr
    assert all(each in told for each in made)
    assert "twin-1" in told


@pytest.mark.parametrize("text", ["abc", "zzzzzzzz", "", "0123"])
def test_too_little_of_an_id_is_refused(cb: Cli, text: str) -> None:
    for command in (["token", "revoke"], ["review", "show"], ["sandbox", "status"], ["bring-back"]):
        done = cb(*command, "--json", "--", text)
        assert (done.code, done.error["code"]) == (2, "invalid_input"), command


def test_an_unknown_id_is_not_found(cb: Cli) -> None:
    for command in (["token", "revoke"], ["review", "show"], ["sandbox", "status"], ["bring-back"]):
        done = cb(*command, "ffffffff", "--json")
        assert (done.code, done.error["code"]) == (1, "not_found"), command


# What is written about changes


def collided(cb: Cli, tmp_path: Path) -> str:
    """A file that two wrote; what the command said to the second."""
    texts = []
    for number, text in enumerate(("one\n", "two\n", "three\n")):
        (tmp_path / "f").write_text(text)
        texts.append(cb("put", str(tmp_path / "f"), "f.txt", "--base", "0" if number == 0 else "1").stdout)
    return texts[-1]


def test_what_waits_for_review_is_told_with_its_conflicts_and_what_to_do(cb: Cli, tmp_path: Path) -> None:
    told = collided(cb, tmp_path)
    found = re.search(r"in review  f\.txt  \(1 conflict; decide with: contextbase review show (\w{8})\)\n", told)
    assert found is not None, told
    assert cb("review", "show", found[1], "--json").json["path"] == "f.txt"


def test_what_a_policy_sends_to_review_is_not_said_to_have_no_conflicts(cb: Cli) -> None:
    assert cb("policy", "merge", "**=critical").code == 0
    told = cb("put", "/etc/hostname", "critical.txt").stdout
    assert "in review" in told
    assert "review show" in told
    assert not re.search(r"\b0 (places|conflicts)", told)


def test_what_was_set_aside_can_be_brought_back_by_what_the_log_shows(cb: Cli, tmp_path: Path) -> None:
    collided(cb, tmp_path)
    kept = re.search(r"in review +f\.txt  \(kept as (\w{8})\)", cb("log").stdout)
    assert kept is not None
    assert kept[1] in cb("show", "3").stdout
    assert cb("bring-back", kept[1]).code == 0
    assert cb("cat", "f.txt").stdout == "three\n"


def test_one_of_a_thing_is_not_many(cb: Cli, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    cb("put", str(tmp_path / "f"), "f.txt")
    assert "1 file, " in cb("project", "show", os.environ["CONTEXTBASE_PROJECT"]).stdout
    assert "1 file changed, 1 line added, 0 removed" in cb("diff", "--stat").stdout
    assert "1 row to" in cb("audit", "--action", "commit", "--export", str(tmp_path / "trail")).stdout
    assert "1 blob " in cb("gc", "--dry-run", "--grace-hours", "0").stdout or "0 blobs" in cb("gc", "--dry-run").stdout


# Progress


def test_a_large_put_shows_how_far_it_is_on_a_terminal_alone(cb: Cli, server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(5 << 20))
    shown = in_terminal(server, "put", str(tmp_path / "large"), "large.bin", columns=120)
    assert "uploading large.bin" in shown
    assert "/5.2 MB" in shown
    assert "Commit 1." in shown
    done = cb("put", str(tmp_path / "large"), "again.bin")
    assert (done.code, done.stderr) == (0, "")


# Options


def options_of(name: str = "", command: object = None) -> dict[str, list[list[str]]]:
    """For each command, the names of each of its options."""
    command = command or get_command(app)
    if load := getattr(command, "load", None):  # commands are imported when they are used
        command = load()
    inner = getattr(command, "commands", None)
    if inner is None:
        return {name: [option.opts for option in getattr(command, "params", [])]}
    found: dict[str, list[list[str]]] = {}
    for child, each in inner.items():
        found |= options_of(f"{name} {child}".strip(), each)
    return found


def test_a_short_option_means_one_thing_everywhere() -> None:
    meanings: dict[str, set[str]] = {}
    for names in (names for options in options_of().values() for names in options):
        for short in (name for name in names if re.fullmatch(r"-\w", name)):
            meanings.setdefault(short, set()).add(max(names, key=len))
    assert meanings.pop("-n") == {"--limit", "--count"}  # how many, in a list or side by side
    assert meanings.pop("-m") == {"--message", "--reason"}
    assert meanings.pop("-i") == {"--ignore-case", "--interactive"}  # as in grep, and as in docker exec
    assert {short: long for short, long in meanings.items() if len(long) > 1} == {}
    assert meanings["-p"] == {"--project"}


def test_project_and_limit_have_their_short_names_wherever_they_are() -> None:
    for command, options in options_of().items():
        for names in options:
            assert ("--project" in names) == ("-p" in names), command
            assert "--limit" not in names or "-n" in names, command


# Completion


def completed(server: ServerProcess, line: str, **more: str) -> tuple[list[str], str]:
    """What bash would offer at the end of a line, and what would be shown besides."""
    done = subprocess.run(
        [PROGRAM],
        env=variables(
            server,
            **{"_CONTEXTBASE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))} | more,
        ),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    return done.stdout.split(), done.stderr


def test_a_shell_completes_projects_and_paths(cb: Cli, server: ServerProcess) -> None:
    project = os.environ["CONTEXTBASE_PROJECT"]
    for path in ("docs/plan.md", "docs/deep/note.md", "data.txt"):
        assert cb("put", "/etc/hostname", path).code == 0
    assert completed(server, f"contextbase ls --project {project[:6]}") == ([project], "")
    assert completed(server, f"contextbase project show {project[:6]}") == ([project], "")
    assert completed(server, "contextbase cat d") == (["data.txt", "docs/"], "")
    assert completed(server, "contextbase cat docs/") == (["docs/deep/", "docs/plan.md"], "")
    assert completed(server, f"contextbase ls -p {project} docs/p") == (["docs/plan.md"], "")


def test_completion_is_silent_when_nothing_can_be_found_out(server: ServerProcess) -> None:
    for wrong in (
        {"CONTEXTBASE_URL": "http://127.0.0.1:9", "CONTEXTBASE_TOKEN": "cb_x"},
        {"CONTEXTBASE_URL": "nonsense", "CONTEXTBASE_TOKEN": "cb_x"},
        {"CONTEXTBASE_DATA": "/dev/null/x"},
        {"CONTEXTBASE_PORT": "http"},
        {"CONTEXTBASE_PROJECT": "no-such-project"},
    ):
        assert completed(server, "contextbase cat d", **wrong) == ([], ""), wrong
