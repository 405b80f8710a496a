"""Two agents collide, and a person decides: from the command line."""

import re
import stat
from pathlib import Path

import pytest
from tests.support.cli import Cli

pytestmark = pytest.mark.xdist_group("cli")

BASE = "# Plan\n\nWe start in May.\n\nAnn leads.\n\nBen tests.\n"
OURS = BASE.replace("May", "June")
THEIRS = BASE.replace("May", "July").replace("Ben tests", "Ben and Carl test")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def collide(cb: Cli, folder: Path, path: str = "plan.md") -> str:
    """A change that waits for a person; returns how its id ends."""
    base, file = "0", folder / "put.md"
    for text in (BASE, OURS, THEIRS):
        file.write_text(text)
        done = cb("put", str(file), path, "--base", base, "--json")
        assert done.code == 0, done.stderr
        base = base if base != "0" else str(done.json["seq"])
    assert done.json["changes"][0]["status"] == "in_review"
    return str(done.json["changes"][0]["review_id"])[-8:]


def an_editor(folder: Path, script: str) -> str:
    """A program that edits the file it is given as `sed` does."""
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def kept_text(complaint: str) -> Path:
    """Where the text is that was not sent, as the error says."""
    found = re.search(r"Your text is in (.+)\. \[", complaint.replace("\n", ""))
    assert found is not None, complaint
    return Path(found[1])


def test_what_waits_is_listed_shown_claimed_talked_about_and_decided(cb: Cli, tmp_path: Path) -> None:
    assert cb("review", "list").stdout == "Nothing waits for review.\n"
    review = collide(cb, tmp_path)
    assert "Ben and Carl test." in cb("cat", "plan.md").stdout  # what was not contested is in
    listed = cb("review", "list").stdout
    assert review in listed
    assert "content, 1 conflict " in listed
    assert cb("review", "claim", review).stdout.startswith("plan.md: ")
    assert "user:owner" in cb("review", "list", "--claimed-by", "user:owner").stdout
    assert cb("review", "comment", review, "Which month is it?").code == 0
    shown = cb("review", "show", review).stdout
    for part in ("<<<<<<< ours: the head, 3", "We start in June.", "We start in July.", "Which month is it?"):
        assert part in shown
    assert f"contextbase review resolve {review} --at 3 [--ours | --theirs | --edit | --pick 1=ours]" in shown
    done = cb("review", "resolve", review, "--theirs", "--at", "3", "-m", "July it is")
    assert done.stdout == "plan.md: Resolved in commit 4.\n", done.stderr
    assert cb("cat", "plan.md").stdout == THEIRS
    assert "July it is" in cb("log").stdout
    assert cb("review", "list").stdout == "Nothing waits for review.\n"
    assert "resolved" in cb("review", "list", "--state", "all").stdout
    assert "resolved by user:owner" in cb("review", "show", review).stdout
    assert "review.resolve" in cb("audit").stdout
    again = cb("review", "resolve", review, "--ours")
    assert (again.code, "resolved already" in again.stderr) == (1, True)


def test_a_draft_is_edited_and_refused_while_markers_are_left(cb: Cli, tmp_path: Path) -> None:
    review = collide(cb, tmp_path)
    untouched = cb("review", "resolve", review, "--edit", EDITOR=an_editor(tmp_path, "exit 0"))
    assert untouched.code == 2
    assert "conflict markers" in untouched.stderr
    kept = kept_text(untouched.stderr)
    assert "<<<<<<<" in kept.read_text()
    kept.unlink()
    script = "sed -i -e '/^<<<<<<</,/^>>>>>>>/{/July/!d;s/July/August/}' \"$1\""
    done = cb("review", "resolve", review, "--edit", EDITOR=an_editor(tmp_path, script))
    assert done.code == 0, done.stderr
    assert cb("cat", "plan.md").stdout == THEIRS.replace("July", "August")
    broken = cb("review", "resolve", collide(cb, tmp_path, "b.md"), "--edit", EDITOR=an_editor(tmp_path, "exit 3"))
    assert (broken.code, "code 3" in broken.stderr) == (2, True)
    kept_text(broken.stderr).unlink()


def test_conflicts_are_picked_a_file_is_given_and_items_are_rejected(cb: Cli, tmp_path: Path) -> None:
    review = collide(cb, tmp_path, "a.md")
    assert cb("review", "resolve", review, "--pick", "1=theirs").code == 2  # of which head?
    done = cb("review", "resolve", review, "--pick", "1=theirs", "--at", "3", "--json")
    assert (done.code, done.json["state"]) == (0, "resolved"), done.stderr
    assert cb("cat", "a.md").stdout == THEIRS
    review = collide(cb, tmp_path, "b.md")
    mine = tmp_path / "mine.md"
    mine.write_text("# Mine\n")
    at = str(cb("review", "show", review, "--json").json["ours_seq"])
    assert cb("review", "resolve", review, "--file", str(mine), "--at", at).code == 0
    assert cb("cat", "b.md").stdout == "# Mine\n"
    review = collide(cb, tmp_path, "c.md")
    assert cb("review", "reject", review, "--reason", "Too late.").stdout == "c.md: Rejected.\n"
    assert "Too late." in cb("review", "show", review).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("resolve", "0"), "--ours, --theirs"),
        (("resolve", "0", "--ours", "--theirs"), "--ours, --theirs"),
        (("show", "zzzz"), "not the id of a review item"),
        (("list", "--state", "new"), "is not a state"),
        (("resolve", "zz", "--pick", "1=mine", "--at", "1"), "not the id of a review item"),
    ],
)
def test_what_makes_no_sense_is_said(cb: Cli, arguments: tuple[str, ...], says: str) -> None:
    done = cb("review", *arguments)
    assert done.code in (1, 2)
    assert says in done.stderr
