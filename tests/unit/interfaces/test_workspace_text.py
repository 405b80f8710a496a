"""A workspace on a terminal."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contextbase.interfaces.cli.workspace_text import (
    drawn_commit,
    drawn_completion,
    drawn_refresh,
    drawn_status,
    went_in,
)
from contextbase.wire.workspace import RefreshedView, WorkspaceCommitView, WorkspaceCompleteView, WorkspaceStatusView

SOME_ID = UUID("01234567-89ab-7def-8123-456789abcdef")
FOLDER = "/data/node/workspaces/w"
WORKSPACE: dict[str, Any] = {
    "id": SOME_ID,
    "project_id": SOME_ID,
    "agent": "agent:ann",
    "path": FOLDER,
    "base_seq": 2,
    "shown_seq": 3,
    "epoch": SOME_ID,
    "backend": "overlay",
    "machine": "here",
    "state": "open",
    "commits": 0,
    "created_at": "2026-01-01T00:00:00Z",
    "seen_at": "2026-01-01T00:00:00Z",
    "ended_at": None,
}


def pending(path: str, change: str, kind: str = "file", renamed_from: str | None = None) -> dict[str, Any]:
    return {"path": path, "change": change, "kind": kind, "renamed_from": renamed_from, "size": 1}


def ignored(path: str, line: int | None) -> dict[str, Any]:
    return {"path": path, "source": "rules", "line": line, "pattern": "*"}


def settled(path: str, status: str, **fields: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(
        ("result_path", "node_id", "number", "strategy", "side_version_id", "review_id", "code", "reason")
    )
    own = {"path": path, "status": status, "change": "modified", "renamed_from": None, "kept_at": None}
    return nothing | own | {"notes": [], "conflicts": []} | fields


def committed(*changes: dict[str, Any], seq: int | None = 7, **fields: Any) -> dict[str, Any]:
    nothing = {"reported": [], "ignored": [], "notes": [], "refreshed": None}
    return {"workspace": WORKSPACE, "seq": seq, "changes": changes} | nothing | fields


def completed(*changes: dict[str, Any], kept: tuple[str, ...] = ()) -> WorkspaceCompleteView:
    fields = committed(*changes) | {"removed": not kept, "kept_because": kept}
    return WorkspaceCompleteView.model_validate(fields)


def commit_lines(*changes: dict[str, Any], seq: int | None = 7) -> list[str]:
    return [line.plain for line in drawn_commit(WorkspaceCommitView.model_validate(committed(*changes, seq=seq)))]


def test_status_has_a_sign_for_each_change_and_a_reason_for_what_cannot_be_committed() -> None:
    status = WorkspaceStatusView.model_validate(
        {
            "workspace": WORKSPACE,
            "changes": [
                pending("a", "created"),
                pending("d", "created", "directory"),
                pending("m", "mode"),
                pending("new", "renamed", renamed_from="old"),
                pending("x", "deleted", "deleted"),
            ],
            "reported": [{"name": "pipe\x1b[2J", "problem": "special", "reason": "It is a pipe."}],
            "ignored": [ignored(".git/", None), ignored("a.log", 3)],
            "notes": ["A note."],
            "left": [],
        }
    )
    assert [line.plain for line in drawn_status(status)] == [
        f"## agent:ann, at snapshot 3: {FOLDER}",
        "A  a",
        "A  d/",
        "M  m  (executable bit)",
        "R  old -> new",
        "D  x",
        "X  pipe\\x1b[2J: It is a pipe.",
        "!! .git/  (rules: *)",
        "!! a.log  (rules:3: *)",
        "A note.",
    ]


def test_a_name_with_a_newline_fakes_no_line() -> None:
    name = "x\nwritten    M passwords"
    reported = {"name": name, "problem": "name", "reason": f"{name} has a newline."}
    status = {
        "workspace": WORKSPACE,
        "changes": [],
        "reported": [reported],
        "ignored": [ignored(name, None)],
        "notes": [],
        "left": [f"{name} runs."],
    }
    kept = committed(reported=[reported]) | {
        "removed": False,
        "kept_because": [f"{name} has a newline.", f"{name} runs."],
    }
    lines = [
        *drawn_status(WorkspaceStatusView.model_validate(status)),
        *drawn_completion(WorkspaceCompleteView.model_validate(kept), here=None),
    ]
    told = [line.plain for line in lines if "passwords" in line.plain]
    assert len(told) == 5  # the reason that is printed above is not repeated
    assert all("x\\x0awritten" in line and "\n" not in line for line in told)


def test_an_untouched_folder_says_so() -> None:
    empty = {"workspace": WORKSPACE, "changes": [], "reported": [], "ignored": [], "notes": [], "left": []}
    status = WorkspaceStatusView.model_validate(empty)
    assert [line.plain for line in drawn_status(status)][1:] == ["Nothing to commit."]


def test_each_outcome_says_what_it_means_for_the_agent() -> None:
    lines = commit_lines(
        settled("w", "written"),
        settled("a.txt", "written", result_path="a (1).txt"),
        settled("s", "superseded"),
        settled("r", "in_review", review_id=SOME_ID),
        settled("no", "refused", code="forbidden", reason="You may only read.", kept_at=".contextbase/refused/no"),
    )
    assert lines == [
        "written    M w",
        "written    M a.txt  is now a (1).txt",
        "superseded M s  another version has precedence; yours is kept beside it",
        "in review  M r  decide with: contextbase review show 89abcdef",
        "refused    M no  You may only read.",
        f"             your version: {FOLDER}/.contextbase/refused/no",
        "Commit 7.",
    ]


def test_a_commit_without_a_number_says_that_nothing_was_committed() -> None:
    assert commit_lines(seq=None) == ["Nothing to commit."]
    refused = settled("no", "refused", code="forbidden", reason="You may only read.")
    assert commit_lines(refused, seq=None) == ["refused    M no  You may only read.", "Nothing was committed."]


def test_of_very_many_changes_only_those_are_listed_that_did_not_just_go_in() -> None:
    lines = commit_lines(*(settled(f"f{number}", "written") for number in range(500)), settled("m", "merged"))
    assert lines == ["merged     M m", "written    500 changes (--json lists them)", "Commit 7."]


@pytest.mark.parametrize("status", ["superseded", "in_review", "refused"])
def test_what_is_not_in_the_head_did_not_go_in(status: str) -> None:
    in_the_head = [settled(one, one) for one in ("written", "merged", "unchanged")]
    assert went_in(completed(*in_the_head))
    assert not went_in(completed(*in_the_head, settled("x", status)))


@pytest.mark.parametrize(
    ("here", "advice"),
    [
        (Path(FOLDER) / "deep", "Your shell is in that folder: cd elsewhere, then complete it again."),
        (Path("/"), "Copy what you need and complete it again, or use --discard to give up the rest."),
        (None, "Copy what you need and complete it again, or use --discard to give up the rest."),
    ],
)
def test_a_folder_that_is_kept_comes_with_what_to_do(here: Path | None, advice: str) -> None:
    lines = [line.plain for line in drawn_completion(completed(kept=("A process is in it.",)), here=here)]
    assert lines[-3:] == [f"The folder is kept: {FOLDER}", "  A process is in it.", advice]


def test_a_refresh_says_what_arrived_what_was_merged_and_why_the_rest_is_kept() -> None:
    refreshed = RefreshedView.model_validate(
        {
            "seq": 9,
            "since": 3,
            "arrived": [{"path": "a\x1b", "change": "created"}, {"path": "run", "change": "mode"}],
            "merged": ["m.json"],
            "kept": [{"path": "k.md", "code": "conflict", "reason": "There is no clean merge."}],
        }
    )
    assert [line.plain for line in drawn_refresh(refreshed)] == [
        "arrived    A a\\x1b",
        "arrived    M run  (executable bit)",
        "merged       m.json",
        "kept         k.md: There is no clean merge.",
        "The folder shows snapshot 9.",
    ]
    many = refreshed.model_copy(update={"arrived": refreshed.arrived * 100})
    assert next(line.plain for line in drawn_refresh(many)) == "arrived    200 files (--json lists them)"
    nothing = RefreshedView(seq=9, since=9, arrived=[], merged=[], kept=[])
    assert [line.plain for line in drawn_refresh(nothing)] == ["Nothing new: the folder is up to date."]
