"""A workspace's state, and what became of its changes, drawn for a terminal."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.text import Text

from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.output import on_one_line
from contextbase.wire.workspace import (
    IgnoredView,
    PendingChangeView,
    RefreshedView,
    ReportedView,
    WorkspaceChangeView,
    WorkspaceCommitView,
    WorkspaceCompleteView,
    WorkspaceStatusView,
)

__all__ = ["drawn_commit", "drawn_completion", "drawn_refresh", "drawn_status", "went_in"]

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
    yield Text(f"## {workspace.agent}, at snapshot {workspace.shown_seq}: {workspace.path}", "dim")
    for change in status.changes:
        sign = _SIGNS[change.change]
        yield Text.assemble((f"{sign} ", _SIGN_STYLES[sign]), " ", _place(change))
    for reported in status.reported:
        yield _cannot(reported)
    yield from (_ignored(one) for one in status.ignored)
    yield from (Text(on_one_line(note), "yellow") for note in status.notes)
    yield from (Text(on_one_line(sentence)) for sentence in status.left)
    if not status.changes and not status.reported:
        yield Text("Nothing to commit.")


def drawn_commit(committed: WorkspaceCommitView) -> Iterator[Text]:
    if not committed.changes:
        yield Text("Nothing to commit.")
    plain = [change for change in committed.changes if _is_plain(change)]
    is_long = len(plain) > _MOST_LISTED
    for change in committed.changes:
        if not is_long or not _is_plain(change):
            yield from _outcome(change, committed.workspace.path)
    if is_long:
        yield Text(f"{'written':10} {len(plain):,} changes (--json lists them)", "green")
    for reported in committed.reported:
        yield _cannot(reported)
    yield from (Text(on_one_line(note), "yellow") for note in committed.notes)
    if committed.seq is not None:
        yield Text(f"Commit {committed.seq}.")
    elif committed.changes:
        yield Text("Nothing was committed.")
    if committed.refreshed is not None:
        yield from drawn_refresh(committed.refreshed)


def drawn_refresh(refreshed: RefreshedView) -> Iterator[Text]:
    """What arrived (A, M, D), what was merged into files of the agent's, what is kept as the agent has it and why."""
    if len(refreshed.arrived) <= _MOST_LISTED:
        for arrived in refreshed.arrived:
            sign = _SIGNS[arrived.change]
            note = "  (executable bit)" if arrived.change == "mode" else ""
            yield Text.assemble(
                ("arrived    ", "green"), (sign, _SIGN_STYLES[sign]), f" {on_one_line(arrived.path)}{note}"
            )
    else:
        yield Text(f"{'arrived':10} {len(refreshed.arrived):,} files (--json lists them)", "green")
    for path in refreshed.merged:
        yield Text.assemble(("merged       ", "cyan"), on_one_line(path))
    for kept in refreshed.kept:
        yield Text.assemble(("kept         ", "magenta"), f"{on_one_line(kept.path)}: {kept.reason}")
    if refreshed.arrived or refreshed.merged or refreshed.kept:
        yield Text(f"The folder shows snapshot {refreshed.seq}.")
    else:
        yield Text("Nothing new: the folder is up to date.")


def drawn_completion(completed: WorkspaceCompleteView, *, here: Path | None) -> Iterator[Text]:
    """`here`: the folder of the shell that asks, which itself may be what is in the way."""
    yield from drawn_commit(completed)
    if completed.removed:
        yield Text("The workspace is completed, and its folder removed.")
        return
    yield Text(f"The folder is kept: {completed.workspace.path}", "yellow")
    told = {reported.reason for reported in completed.reported}  # a few lines above
    yield from (Text(f"  {on_one_line(sentence)}") for sentence in completed.kept_because if sentence not in told)
    if here is not None and here.is_relative_to(completed.workspace.path):
        yield Text("Your shell is in that folder: cd elsewhere, then complete it again.")
    else:
        yield Text("Copy what you need and complete it again, or use --discard to give up the rest.")


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
        note = f"  decide with: contextbase review show {short_id(change.review_id)}"
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


def _ignored(one: IgnoredView) -> Text:
    rule = f"{one.source}:{one.line}: {one.pattern}" if one.line else f"{one.source}: {one.pattern}"
    return Text(f"!! {on_one_line(one.path)}  ({on_one_line(rule)})", "dim")


def _cannot(reported: ReportedView) -> Text:
    return Text.assemble(("X ", "red"), f" {on_one_line(reported.name)}: {on_one_line(reported.reason)}")
