"""`contextbase rollback, undo, bring-back, purge`."""

from pathlib import Path

import pytest
from tests.support.cli import Cli

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def put(cb: Cli, tmp_path: Path) -> Cli:
    def write(text: str, path: str, *options: str) -> object:
        file = tmp_path / "put"
        file.write_text(text)
        done = cb("put", str(file), path, *options, "--json")
        assert done.code == 0, done.stderr
        return done

    return write  # type: ignore[return-value]  # it answers as the commands do


def test_a_rollback_is_shown_made_and_then_there_is_nothing_to_do(cb: Cli, put: Cli) -> None:
    put("1\n", "a.txt")
    put("2\n", "a.txt")
    shown = cb("rollback", "1", "--dry-run")
    assert "-2" in shown.stdout
    assert "+1" in shown.stdout
    assert cb("cat", "a.txt").stdout == "2\n"
    assert "Commit 3." in cb("rollback", "1").stdout
    assert cb("cat", "a.txt").stdout == "1\n"
    assert "already matches" in cb("rollback", "1").stdout
    assert cb("rollback", "--file", "a.txt", "--version", "2", "--json").json["seqs"] == [4]
    assert cb("rollback", "nowhere").code == 1
    assert cb("rollback").code == 2


def test_commits_are_undone_by_number_range_and_author(cb: Cli, put: Cli) -> None:
    for number in range(1, 5):
        put(f"{number}\n", f"{number}.txt")
    assert cb("undo", "1", "3..4").code == 0
    assert [entry["path"] for entry in cb("ls", "--json").json] == ["2.txt"]
    assert cb("undo", "--by", "user:owner", "--since", "2", "--until", "2").code == 0
    assert cb("ls", "--json").json == []
    assert cb("undo", "x").code == 2
    assert cb("undo", "4..1").code == 2
    assert cb("undo", "--by", "agent:nobody").code == 1


def test_what_was_set_aside_comes_back(cb: Cli, put: Cli) -> None:
    put("1\n", "a.txt")
    put("2\n", "a.txt", "--base", "1")
    [change] = put("3\n", "a.txt", "--base", "1").json["changes"]
    assert cb("bring-back", change["side_version_id"]).code == 0
    assert cb("cat", "a.txt").stdout == "3\n"
    assert cb("bring-back", "not-an-id").code == 2


def test_a_purge_asks_and_is_for_good(cb: Cli, put: Cli) -> None:
    put("hunter2\n", "secret.txt")
    shown = cb("purge", "secret.txt", "--dry-run")
    assert "1 content " in shown.stdout
    assert "delete  secret.txt" in shown.stdout
    assert cb("purge", "secret.txt", "--json").code == 2  # nobody can be asked
    assert cb("cat", "secret.txt").stdout == "hunter2\n"
    done = cb("purge", "secret.txt", "--yes")
    assert "Purged 1 content, and deleted 1 file." in done.stdout
    gone = cb("cat", "secret.txt", "--at", "1")
    assert gone.code == 1
    assert "content_purged" in gone.stderr
