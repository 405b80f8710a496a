"""History, differences, and the way from a workspace to the project and back."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from contextbase.compare import FileDiff, render_unified
from contextbase.errors import NotFound
from contextbase.gate.model import ChangeStatus
from contextbase.history.diffs import Diffs
from contextbase.identity.model import Action
from contextbase.ids import Seq, TreePath
from contextbase.reads.commit_log import CommitLog, LogEntry, LogPage
from contextbase.tools.arguments import ArgumentKind, Parameter
from contextbase.tools.model import LONGEST_ANSWER, Tool, ToolCall, ToolPlace, ToolResult
from contextbase.tools.wording import fitting, listed, moment_shown
from contextbase.workspaces.checkpoints import Committed, Wish
from contextbase.workspaces.commit_plan import PendingChange
from contextbase.workspaces.refresh.service import Refreshed
from contextbase.workspaces.service import WorkspaceService
from contextbase.workspaces.settlement import SettledChange

__all__ = ["VersionTools"]

_MOST_COMMITS: Final = 30
_MOST_DIFFS: Final = 50
_MOST_PATHS: Final = 8
_MOST_REFRESHED: Final = 200
_LONGEST_MESSAGE: Final = 200
_NO_WORKSPACE: Final = "You have no workspace here: you work on the project itself, and each change is a commit."


class VersionTools:
    def __init__(self, *, workspaces: WorkspaceService, log: CommitLog, diffs: Diffs) -> None:
        self._workspaces = workspaces
        self._log = log
        self._diffs = diffs

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="history",
                description="Who changed the project, or one file, when and why; newest first.",
                parameters=(
                    Parameter(name="path"),
                    Parameter(name="before", kind=ArgumentKind.NUMBER, description="A commit.", least=1, most=2**62),
                ),
                run=self.history,
            ),
            Tool(
                name="diff",
                description="What differs: your uncommitted changes, or from one commit to another.",
                parameters=(
                    Parameter(name="path", description="A file or folder."),
                    Parameter(name="from", description="A commit, as 12 or head~3.", longest=200),
                    Parameter(name="to", description="Default: head.", longest=200),
                    Parameter(name="after", description="A path to go on after."),
                ),
                run=self.diff,
            ),
            Tool(name="status", description="What you changed and did not commit yet.", run=self.status),
            Tool(
                name="commit",
                description="Commit your workspace: merge what you changed into the project, for all to see.",
                parameters=(Parameter(name="message", is_required=True),),
                needs=Action.WRITE,
                is_idempotent=True,
                is_basic=True,
                run=self.commit,
            ),
            Tool(
                name="refresh",
                description="Bring what others committed into your workspace, merged with your own changes.",
                needs=Action.WRITE,
                is_idempotent=True,
                run=self.refresh,
            ),
        )

    async def history(self, call: ToolCall) -> ToolResult:
        place, text, number = call.place, call.arguments.text("path"), call.arguments.number("before", 0)
        path = place.paths.in_project(TreePath.parse(text)) if text else None
        page = await self._history(place, path, before=Seq(number) if number else None)
        lines, is_all = fitting((_commit_line(entry, place) for entry in page.entries), LONGEST_ANSWER)
        shown = page.entries[: len(lines)]
        next_before = page.next_before if is_all else shown[-1].seq
        note = f"Earlier ones: call history again with before={next_before}." if next_before else ""
        data = {"commits": [_commit_data(entry, place) for entry in shown], "nextBefore": next_before}
        return ToolResult(text="\n".join(lines) or "Nothing was committed yet.", note=note, data=data)

    async def _history(self, place: ToolPlace, path: TreePath | None, *, before: Seq | None) -> LogPage:
        """Of a file across renames, or of all in a folder; `path` is as the project has it, None: the place's top."""

        async def log(*, path: TreePath | None = None, below: TreePath | None = None) -> LogPage:
            return await self._log.log(
                place.acting, place.project_id, path=path, below=below, before=before, limit=_MOST_COMMITS
            )

        if path is None:
            return await log(below=place.paths.folder)
        try:
            return await log(path=path)
        except NotFound:
            page = await log(below=path)
            if not page.entries and page.next_before is None and before is None:
                raise
            return page

    async def diff(self, call: ToolCall) -> ToolResult:
        place, text = call.place, call.arguments.text("path")
        below = TreePath.parse(text) if text else None
        after, first, last = call.arguments.text("after"), call.arguments.text("from"), call.arguments.text("to")
        if place.is_workspace and not first and not last:
            files, following = await self._workspaces.diff(
                place.caller, place.workspace, below=below, after=after, limit=_MOST_DIFFS
            )
            nothing = "You changed nothing since your last commit."
        else:
            page = await self._diffs.between(
                place.acting,
                place.project_id,
                first or "head~1",
                last or "head",
                path=place.paths.folder if below is None else place.paths.in_project(below),
                after=place.paths.in_project(TreePath.stored(after)) if after else "",
                limit=_MOST_DIFFS,
            )
            files, following = [_in_folder(file.diff, place) for file in page.files], page.next_after
            if following is not None:
                following = place.paths.named(following)
            nothing = f"Nothing differs between {page.old} and {page.new}."
        shown, is_all = fitting(map(render_unified, files), LONGEST_ANSWER)
        if not is_all:
            following = files[len(shown) - 1].path
        cut = [_cut(patch) for patch in shown]
        note = f"There is more: call diff again with after={following!r}." if following else ""
        return ToolResult(
            text="\n".join(cut).rstrip("\n") or nothing,
            note=note,
            data={"files": [file.path for file in files[: len(shown)]], "nextAfter": following},
        )

    async def status(self, call: ToolCall) -> ToolResult:
        place = call.place
        if not place.is_workspace:
            return ToolResult(text=_NO_WORKSPACE, data={"isWorkspace": False, "changes": []})
        record, look = await self._workspaces.status(place.caller, place.workspace)
        changes = sorted(look.changes, key=lambda change: change.path)
        lines, is_all = fitting(map(_pending_line, changes), LONGEST_ANSWER)
        told = "\n".join(lines) or f"Nothing: all is as in snapshot {record.base}, or committed."
        notes = [] if is_all else [f"{len(changes) - len(lines)} more changes are not listed."]
        notes += [one.reason for one in look.found.reported[:_MOST_PATHS]]
        data = {
            "isWorkspace": True,
            "base": record.base,
            "changes": [_pending(change) for change in changes[: len(lines)]],
        }
        return ToolResult(text=told, note="\n".join(notes), data=data)

    async def commit(self, call: ToolCall) -> ToolResult:
        place = call.place
        if not place.is_workspace:
            return ToolResult(text=f"Nothing to commit. {_NO_WORKSPACE}", data={"seq": None, "changes": []})
        wish = Wish(message=call.arguments.text("message"), message_id=call.message_id)
        _, committed = await self._workspaces.commit(place.caller, place.workspace, wish=wish)
        lines, _ = fitting(_committed_lines(committed), LONGEST_ANSWER)
        data = {"seq": committed.seq, "changes": [_settled(one) for one in committed.changes[:_MOST_COMMITS]]}
        return ToolResult(text="\n".join(lines), data=data)

    async def refresh(self, call: ToolCall) -> ToolResult:
        place = call.place
        if not place.is_workspace:
            return ToolResult(text=f"Nothing to refresh. {_NO_WORKSPACE}", data={"seq": None, "since": None})
        _, found = await self._workspaces.refresh(place.caller, place.workspace)
        lines, is_all = fitting(_refreshed_lines(found), LONGEST_ANSWER)
        data = {
            "seq": found.seq,
            "since": found.since,
            "arrived": [{"path": one.path, "change": one.kind.value} for one in found.arrived[:_MOST_REFRESHED]],
            "merged": found.merged[:_MOST_REFRESHED],
            "kept": [{"path": one.path, "reason": one.reason.value} for one in found.kept[:_MOST_REFRESHED]],
        }
        note = "" if is_all else "More paths than these arrived."
        return ToolResult(text="\n".join(lines), note=note, data=data)


def _in_folder(diff: FileDiff, place: ToolPlace) -> FileDiff:
    old, new = diff.old_path, diff.new_path
    return replace(
        diff,
        old_path=None if old is None else place.paths.named(old),
        new_path=None if new is None else place.paths.named(new),
    )


def _commit_line(entry: LogEntry, place: ToolPlace) -> str:
    author = entry.author
    paths = listed([f"{change.what} {place.paths.named(change.path)}" for change in entry.changes], _MOST_PATHS)
    message = " ".join(author.message.split())[:_LONGEST_MESSAGE]
    more = entry.change_count - len(entry.changes)
    return (
        f"{entry.seq}  {moment_shown(author.at)}  {author.principal}  {message}\n    {paths}"
        f"{f' (+{more})' if more > 0 else ''}"
    )


def _commit_data(entry: LogEntry, place: ToolPlace) -> dict[str, object]:
    return {
        "seq": entry.seq,
        "at": entry.author.at.isoformat(),
        "by": entry.author.principal,
        "message": entry.author.message,
        "changes": [
            {"what": change.what, "path": place.paths.named(change.path)} for change in entry.changes[:_MOST_COMMITS]
        ],
    }


def _cut(patch: str) -> str:
    """One file's patch alone may be too long."""
    if len(patch) <= LONGEST_ANSWER:
        return patch
    return (
        f"{patch[:LONGEST_ANSWER]}\n… {len(patch) - LONGEST_ANSWER} more characters of this file's patch are left out."
    )


def _pending_line(change: PendingChange) -> str:
    return f"{_what(change)} {change.path}" + (f" (was {change.renamed_from})" if change.renamed_from else "")


def _what(change: PendingChange) -> str:
    if change.content is None:
        return "deleted"
    if change.renamed_from is not None:
        return "renamed"
    return "created" if change.before is None else "changed"


def _pending(change: PendingChange) -> dict[str, object]:
    return {"path": change.path, "change": _what(change), "renamedFrom": change.renamed_from}


def _settled(one: SettledChange) -> dict[str, object]:
    answer = one.answered.answer
    return {"path": one.answered.change.path, "status": answer.status.value, "reason": answer.reason}


_EXPLAINED: Final = {
    ChangeStatus.MERGED: "merged with what others wrote: read it again before you go on",
    ChangeStatus.IN_REVIEW: "conflicts with what others wrote: a person decides",
    ChangeStatus.SUPERSEDED: "the project prefers what stands there: yours is kept beside it",
}


def _committed_lines(committed: Committed) -> Iterable[str]:
    counts = Counter(one.answered.answer.status for one in committed.changes)
    if not committed.changes:
        yield "Nothing to commit: you changed nothing since your last commit."
    else:
        told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
        yield f"Commit {committed.seq}: {told}." if committed.seq is not None else f"Nothing was committed: {told}."
    for one in committed.changes:
        answer, path = one.answered.answer, one.answered.change.path
        if answer.status is ChangeStatus.REFUSED:
            kept = f" Your version is in {one.kept_at}." if one.kept_at else ""
            yield f"{path}: refused. {answer.reason or ''}{kept}"
        elif answer.status in _EXPLAINED:
            yield f"{path}: {_EXPLAINED[answer.status]}."
    for reported in committed.reported:
        yield f"Not committed: {reported.reason}"
    yield from committed.notes


def _refreshed_lines(found: Refreshed) -> Iterable[str]:
    """What needs a look comes first: there may be many paths that just arrived."""
    if not (found.arrived or found.merged or found.kept):
        yield f"Nobody changed anything since: you have commit {found.seq}."
        return
    yield f"You have commit {found.seq} now: {found.told}."
    for one in found.kept:
        yield f"kept yours: {one.path}. {one.reason.sentence}"
    for path in found.merged:
        yield f"merged: {path}. Read it again before you go on."
    for arrived in found.arrived:
        yield f"{arrived.kind.value}: {arrived.path}"
