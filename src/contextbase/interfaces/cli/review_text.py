"""A review item drawn for a terminal."""

import re
from typing import Final

from rich.text import Text

from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.output import visible
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.wire.commit import ConflictSide
from contextbase.wire.review import ReviewDetail

__all__ = ["drawn", "has_markers"]

_MARKER: Final = re.compile(r"^(<{7}|\|{7}|={7}|>{7})(?= |$)", re.MULTILINE)
_STYLES: Final = {"<": "green", "|": "dim", "=": "yellow", ">": ""}  # of what follows a marker


def has_markers(text: str) -> bool:
    """Whether something is still contested in it: `=======` alone may be a heading's line."""
    return bool(re.search(r"^(<{7}|>{7})(?= |$)", text, re.MULTILINE))


def drawn(item: ReviewDetail) -> Text:
    text = Text()
    text.append(f"{item.path}", "bold")
    text.append(f"  {item.reason}, {item.state}, by {item.author} in commit {item.seq}\n")
    if item.renamed_from is not None:
        text.append(f"renamed from {item.renamed_from}\n")
    if item.message:
        text.append(f"{visible(item.message)}\n", "italic")
    if item.claim is not None:
        text.append(f"claimed by {item.claim.by} since {local_time(item.claim.at)}\n")
    if item.closed is not None:
        where = "" if item.closed.seq is None else f" in commit {item.closed.seq}"
        text.append(f"{item.state} by {item.closed.by} at {local_time(item.closed.at)}{where}\n")
    _draw_content(text, item)
    for number, conflict in enumerate(item.conflicts, start=1):
        text.append(
            f"conflict {number}: {conflict.place.kind} {visible(conflict.place.at)}  ({conflict.reason})\n", "bold"
        )
        if conflict.suggestion is not None:
            text.append(f"  suggestion: {_plain(conflict.suggestion)}\n", "cyan")
    _draw_suggestion(text, item)
    for comment in item.discussion:
        text.append(f"{comment.author} at {local_time(comment.at)}: ", "bold")
        text.append(f"{visible(comment.text)}\n")
    if item.state == "open":
        text.append(_advice(item), "dim")
    text.rstrip()
    return text


def _draw_content(text: Text, item: ReviewDetail) -> None:
    if item.draft is not None and item.draft.text is not None:
        text.append("\n")
        _draw_markers(text, item.draft.text)
        text.append("\n")
        return
    for name, side in (("base", item.base), ("ours", item.ours), ("theirs", item.theirs)):
        what = "does not exist" if side is None else f"{side.kind} {side.path}, {counted(side.size, 'byte')}"
        text.append(f"{name:7}{what}\n")


def _draw_markers(text: Text, draft: str) -> None:
    style = ""
    for line in draft.splitlines(keepends=True):
        marker = _MARKER.match(line)
        shown = visible(line.rstrip("\r\n")) + "\n" * line.endswith(("\n", "\r"))
        if marker is not None and (marker[1][0] in "<>" or style):
            style = _STYLES[marker[1][0]]
            text.append(shown, "bold magenta")
        else:
            text.append(shown, style)
    if draft and not draft.endswith("\n"):
        text.append("\n")


def _draw_suggestion(text: Text, item: ReviewDetail) -> None:
    suggestion = item.suggestion
    if suggestion is None:
        return
    if suggestion.content is None:
        text.append(f"no suggestion: {suggestion.problem}\n", "dim")
        return
    text.append(f"{suggestion.by} suggests:\n", "bold")
    text.append(f"{_plain(suggestion.content)}\n", "cyan")


def _plain(content: ConflictSide) -> str:
    return visible((content.text if content.text is not None else "(not text)").rstrip("\n"))


def _advice(item: ReviewDetail) -> str:
    picks = ",".join(f"{number}=ours" for number in range(1, min(len(item.conflicts), 3) + 1))
    ways = ["--ours", "--theirs", "--edit"]
    ways += [f"--pick {picks}"] if item.by_conflict else []
    ways += ["--suggested"] if item.suggestion is not None and item.suggestion.content is not None else []
    return f"contextbase review resolve {short_id(item.id)} --at {item.ours_seq} [{' | '.join(ways)}]\n"
