"""The commands about a project's files, history and policies."""

import json
import os
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.cli import Cli
from tests.support.server import ServerProcess, run_cli

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def note(tmp_path: Path) -> Path:
    file = tmp_path / "note.md"
    file.write_text("# Note\n")
    return file


def test_a_file_is_put_listed_read_moved_and_removed(cb: Cli, note: Path) -> None:
    put = cb("put", str(note), "docs/note.md", "-m", "a start")
    assert (put.code, "written  docs/note.md" in put.stdout, "Commit 1." in put.stdout) == (0, True, True)
    assert "docs/" in cb("ls").stdout
    assert [entry["path"] for entry in cb("ls", "docs", "--json").json] == ["docs/note.md"]
    assert [entry["path"] for entry in cb("ls", "docs/note.md", "--json").json] == ["docs/note.md"]
    assert cb("cat", "docs/note.md").stdout == "# Note\n"
    assert cb("cat", "docs/note.md", "--json").json["text"] == "# Note\n"
    assert cb("mv", "docs", "papers", "--json").json["changes"][0]["result_path"] == "papers/note.md"
    assert cb("rm", "papers").code == 2
    assert cb("rm", "-r", "papers").code == 0
    assert cb("ls", "--json").json == []
    assert cb("cat", "docs/note.md", "--at", "1").stdout == "# Note\n"
    commits = cb("log", "papers/note.md", "--json").json
    assert [commit["changes"][0]["what"] for commit in commits] == ["deleted", "renamed", "added"]
    shown = cb("log").stdout
    assert "user:owner  a start" in shown
    assert "papers/note.md (was docs/note.md)" in shown


def test_content_that_is_large_binary_or_executable_arrives_as_it_is(cb: Cli, tmp_path: Path) -> None:
    content = os.urandom(3 * 1024 * 1024)
    file = tmp_path / "tool"
    file.write_bytes(content)
    file.chmod(0o755)
    assert cb("put", str(file), "bin/tool").code == 0
    [entry] = cb("ls", "bin", "--json").json
    assert (entry["size"], entry["executable"]) == (len(content), True)
    variables = {name: value for name, value in os.environ.items() if name.startswith("CONTEXTBASE_")}
    (tmp_path / "piped").write_bytes(b"")
    stdin = run_cli("put", "-", "piped.txt", stdin="from a pipe\n", **variables)
    assert stdin.code == 0, stdin.stderr
    assert cb("cat", "piped.txt").stdout == "from a pipe\n"


def test_a_change_made_from_an_old_commit_is_merged_or_put_up_for_review(cb: Cli, note: Path) -> None:
    note.write_text("1\n2\n3\n4\n5\n")
    cb("put", str(note), "a.txt")
    note.write_text("one\n2\n3\n4\n5\n")
    cb("put", str(note), "a.txt")
    note.write_text("1\n2\n3\n4\nfive\n")
    assert "merged" in cb("put", str(note), "a.txt", "--base", "1").stdout
    assert cb("cat", "a.txt").stdout == "one\n2\n3\n4\nfive\n"
    note.write_text("uno\n2\n3\n4\n5\n")
    review = cb("put", str(note), "a.txt", "--base", "1")
    assert (review.code, "in review" in review.stdout, "contextbase review show" in review.stdout) == (0, True, True)


def test_a_change_made_from_an_old_version_of_a_file_is_merged(cb: Cli, note: Path) -> None:
    for text in ("1\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n"):
        note.write_text(text)
        cb("put", str(note), "a.txt")
    note.write_text("1\n2\n3\n4\nfive\n")
    assert "merged" in cb("put", str(note), "a.txt", "--base-version", "1").stdout
    assert cb("cat", "a.txt").stdout == "one\n2\n3\n4\nfive\n"
    assert cb("put", str(note), "a.txt", "--base", "1", "--base-version", "1").code == 2


def test_what_cannot_be_done_says_what_to_do(cb: Cli, tmp_path: Path, note: Path) -> None:
    assert "CONTEXTBASE_PROJECT" in cb("ls", "--json", CONTEXTBASE_PROJECT="").error["message"]
    assert cb("ls", "--json", "--project", "no-such-project").error["code"] == "not_found"
    assert "contextbase ls" in cb("cat", "nowhere", "--json").error["message"]
    assert cb("put", str(tmp_path / "none"), "a", "--json").error["code"] == "invalid_input"
    assert cb("put", str(note), "../a", "--json").error["code"] == "invalid_path"
    assert cb("rm", "nowhere", "--json").error["code"] == "not_found"
    assert cb("mv", "nowhere", "b", "--json").error["code"] == "not_found"
    assert cb("policy", "set", "everyone", "docs/**", "write", "--json").error["code"] == "invalid_input"
    assert cb("policy", "merge", "a=coin", "--json").error["code"] == "invalid_input"
    assert cb("audit", "--export", str(tmp_path / "no" / "file"), "--json").error["code"] == "invalid_input"


def test_rules_are_set_explained_enforced_and_removed(cb: Cli, server: ServerProcess, note: Path) -> None:
    project = os.environ["CONTEXTBASE_PROJECT"]
    secret = cb("token", "create", "cli-bot", "--project", project, "--json").json["secret"]
    bot = {"CONTEXTBASE_URL": server.url, "CONTEXTBASE_TOKEN": secret}
    cb("put", str(note), "docs/a.md")
    assert "R on docs/**" in cb("policy", "set", "everyone", "docs/**", "R").stdout
    refused = cb("put", str(note), "docs/b.md", **bot)
    assert (refused.code, "you may only read there (R)" in refused.stderr) == (1, True)
    assert cb("put", str(note), "docs/b.md", "--json", **bot).json["changes"][0]["status"] == "refused"
    explained = cb("policy", "explain", "docs/b.md", "--as", "cli-bot").stdout
    assert "agent:cli-bot has R on docs/b.md" in explained
    assert "everyone" in explained
    assert cb("policy", "default", "hidden", "--json").json["default_level"] == "hidden"
    assert [entry["path"] for entry in cb("ls", "--json", **bot).json] == ["docs"]
    assert cb("policy", "remove", "everyone", "docs/**").code == 0
    assert cb("ls", "--json", **bot).json == []
    assert cb("policy", "list", "--json").json["rules"] == []
    assert "hidden" in cb("policy", "list").stdout
    assert cb("policy", "list", "--json", **bot).error["code"] == "forbidden"


def test_groups_merge_rules_and_ranks_are_managed(cb: Cli) -> None:
    cb("token", "create", "ranked")
    group = f"g-{uuid4().hex[:8]}"
    assert cb("policy", "group", "create", group).code == 0
    assert cb("policy", "group", "add", group, "agent:ranked", "--json").json["member"] is True
    assert {"name": group, "members": ["agent:ranked"]} in cb("policy", "group", "list", "--json").json
    assert cb("policy", "set", f"group:{group}", "**", "RA").code == 0
    assert cb("policy", "group", "remove", group, "agent:ranked", "--json").json["member"] is False
    rules = [{"pattern": "*.lock", "strategy": "theirs"}, {"pattern": "LICENSE", "strategy": "critical"}]
    assert cb("policy", "merge", "*.lock=theirs", "LICENSE=critical", "--json").json == rules
    assert cb("policy", "merge", "--json").json == rules
    assert cb("policy", "merge", "--clear", "--json").json == []
    assert cb("policy", "rank", "agent:ranked", "3", "--json").json == {"principal": "agent:ranked", "rank": 3}
    assert "rank 3  agent:ranked" in cb("policy", "list").stdout


def test_the_audit_trail_is_shown_and_exported(cb: Cli, note: Path, tmp_path: Path) -> None:
    cb("put", str(note), "a.md")
    cb("policy", "default", "R")
    records = cb("audit", "--json").json
    assert [record["action"] for record in records] == ["policy.default", "commit", "project.create"]
    assert [record["action"] for record in cb("audit", "--path", "a.md", "--json").json] == ["commit"]
    assert cb("audit", "--since", "2999-01-01", "--json").json == []
    assert "Made R the project's default." in cb("audit").stdout
    assert {(record["operator_type"], record["grant"]) for record in records} == {("api", "token")}
    file = tmp_path / "audit.jsonl"
    assert "Exported 3 rows" in cb("audit", "--export", str(file)).stdout
    assert [json.loads(line) for line in file.read_text().splitlines()] == records[::-1]
    assert len(cb("audit", "--export", "-", "--action", "commit").stdout.splitlines()) == 1
