"""A workspace's state, and what became of its changes, drawn for a terminal."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.text import Text

from contextbase.interfaces.cli.output import on_one_line
from contextbase.interfaces.cli.review_text import short
from contextbase.wire.workspace import (
    PendingChangeView,
    ReportedView,
    WorkspaceChangeView,
    WorkspaceCommitView,
    WorkspaceCompleteView,
    WorkspaceStatusView,
)

__all__ = ["drawn_commit", "drawn_completion", "drawn_status", "went_in"]

_SIGNS: Final = {"created": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "M"}
_SIGN_STYLES: Final = {"A": "green", "M": "yellow", "D": "red", "R": "cyan"}
_STATUS_STYLES: Final = {"refused": "red", "in_review": "magenta", "superseded": "magenta", "unchanged": "dim"}
_IN: Final = ("written", "merged", "unchanged")
_MOST_LISTED: Final = 100


def went_in(committed: WorkspaceCommitView) -> bool:
    """Whether all that could be sent is in the project now."""
    return all(change.status in _IN for change in committed.changes)


def drawn_status(status: WorkspaceStatusView) -> Iterator[Text]:
    """As `git status --short --branch`: A, M, D, R, !! for what is ignored; X: cannot be committed, and why."""
    workspace = status.workspace
    yield Text(
        f"## {workspace.agent_id}, from snapshot {workspace.base_snapshot_id}: {workspace.workspace_path}", "dim"
    )
    for change in status.changes:
        sign = _SIGNS[change.change]
        yield Text.assemble((f"{sign} ", _SIGN_STYLES[sign]), " ", _place(change))
    for reported in status.reported:
        yield _cannot(reported)
    yield from (Text(f"!! {on_one_line(name)}", "dim") for name in status.ignored)
    yield from (Text(on_one_line(sentence)) for sentence in status.left)
    if not status.changes and not status.reported:
        yield Text("Nothing has changed.")


def drawn_commit(committed: WorkspaceCommitView) -> Iterator[Text]:
    if committed.seq is None:
        yield Text("There was nothing to commit.")
    plain = [change for change in committed.changes if _is_plain(change)]
    is_long = len(plain) > _MOST_LISTED
    for change in committed.changes:
        if not is_long or not _is_plain(change):
            yield from _outcome(change, committed.workspace.workspace_path)
    if is_long:
        yield Text(f"{'written':10} {len(plain)} changes, as they were made (--json lists them)", "green")
    for reported in committed.reported:
        yield _cannot(reported)
    if committed.seq is not None:
        yield Text(f"Commit {committed.seq}.")


def drawn_completion(completed: WorkspaceCompleteView, *, here: Path | None) -> Iterator[Text]:
    """`here`: the folder of the shell that asks, which itself may be what is in the way."""
    yield from drawn_commit(completed)
    if completed.removed:
        yield Text("The workspace is completed, and its folder removed.")
        return
    yield Text(f"The folder is kept: {completed.workspace.workspace_path}", "yellow")
    yield from (Text(f"  {on_one_line(sentence)}") for sentence in completed.kept_because)
    if here is not None and here.is_relative_to(completed.workspace.workspace_path):
        yield Text("Your own shell is in the folder: cd elsewhere, then complete it again.")
    else:
        yield Text("Take out what you need and complete it again, or with --discard to give the rest up.")


def _place(change: PendingChangeView) -> str:
    slash = "/" if change.kind == "directory" else ""
    note = "  (executable bit)" if change.change == "mode" else ""
    if change.renamed_from is not None:
        return on_one_line(f"{change.renamed_from} -> {change.path}")
    return on_one_line(f"{change.path}{slash}") + note


def _is_plain(change: WorkspaceChangeView) -> bool:
    """Whether there is nothing more to say of it than that it was done."""
    return change.status == "written" and change.result_path in (None, change.path)


def _outcome(change: WorkspaceChangeView, folder: str) -> Iterator[Text]:
    place = change.path if change.renamed_from is None else f"{change.renamed_from} -> {change.path}"
    note = ""
    if change.result_path not in (None, change.path) and change.status in _IN:
        note = f"  is now {change.result_path}"
    elif change.status == "superseded":
        note = "  another version has precedence; yours is kept beside it"
    elif change.review_id is not None:
        note = f"  waits for a person: contextbase review show {short(change.review_id)}"
    elif change.reason is not None:
        note = f"  {change.reason}"
    status = change.status.replace("_", " ")
    yield Text.assemble(
        (f"{status:10} ", _STATUS_STYLES.get(change.status, "green")),
        _SIGNS[change.change],
        " ",
        on_one_line(place + note),
    )
    if change.kept_at is not None:
        yield Text(f"{'':13}your version: {on_one_line(f'{folder}/{change.kept_at}')}")


def _cannot(reported: ReportedView) -> Text:
    return Text.assemble(("X ", "red"), f" {on_one_line(reported.name)}: {on_one_line(reported.reason)}")
