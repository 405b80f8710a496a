"""Skills of a place: folders with a file SKILL.md, where any of the agent programs would look for them. The agent is
told their names and what they are for, and reads those it needs; nothing in them is run by us."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from contextbase.agents.place_files import read_text, without_front_matter

__all__ = ["place_skills"]

_FOLDERS: Final = (
    ".kb/skills",
    ".claude/skills",
    ".agents/skills",
    ".codex/skills",
    ".opencode/skills",
    ".opencode/skill",
)
_LONGEST_FILE: Final = 16 << 10
_LONGEST_DESCRIPTION: Final = 500
_MOST: Final = 50
_INTRODUCTION: Final = (
    "Skills of this place. Each is a file with instructions for one kind of task; read it before you do such a task:"
)


def place_skills(workspace: Path) -> str | None:
    """What the agent is told of them; None: there are none."""
    found: dict[str, str] = {}
    for name, line in _skills(workspace):
        if len(found) < _MOST:
            found.setdefault(name, line)
    return "\n".join([_INTRODUCTION, *found.values()]) if found else None


def _skills(workspace: Path) -> Iterator[tuple[str, str]]:
    for folder in _FOLDERS:
        try:
            names = sorted(entry.name for entry in (workspace / folder).iterdir())
        except OSError:
            continue
        for folder_name in names:
            path = f"{folder}/{folder_name}/SKILL.md"
            text = read_text(workspace / path, _LONGEST_FILE) if folder_name.isprintable() else None
            if text is None:
                continue
            body, fields = without_front_matter(text)
            about = fields.get("description") or body.partition("\n")[0].lstrip("# ")
            name = fields.get("name") or folder_name
            yield name, f"- {_line(name)}: {_line(about)} ({path})"


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_DESCRIPTION]
