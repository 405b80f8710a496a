"""What a tool that writes files would change, shown before it is permitted."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["edit_diff"]

_LARGEST_FILE: Final = 1 << 20
_LONGEST_DIFF: Final = 16 << 10


def edit_diff(workspace: Path, given: Mapping[str, Any]) -> str:
    """A unified diff; empty for input that is no write or edit, or whose file is no text that can be read. Runs as the
    agent's own account: it shows no more than the agent could read."""
    path = given.get("file_path")
    if not isinstance(path, str):
        return ""
    try:
        before = _text(workspace / path)
        after = _after(before, given)
    except (OSError, UnicodeError, TypeError, KeyError):
        return ""
    if after is None:
        return ""
    name = path.removeprefix(f"{workspace}/")
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    return text if len(text) <= _LONGEST_DIFF else f"{text[:_LONGEST_DIFF]}…\n"


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    if not path.is_file():  # to read a pipe would take for ever
        raise OSError("no file")
    with path.open("rb") as file:
        content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise OSError("too large to show")
    return content.decode()


def _after(before: str, given: Mapping[str, Any]) -> str | None:
    if isinstance(given.get("content"), str):
        return str(given["content"])
    edits = given["edits"] if isinstance(given.get("edits"), list) else [given]
    after = before
    for edit in edits:
        if not isinstance(edit.get("old_string"), str) or not isinstance(edit.get("new_string"), str):
            return None
        after = after.replace(edit["old_string"], edit["new_string"], -1 if edit.get("replace_all") else 1)
    return after
