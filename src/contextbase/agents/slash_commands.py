"""Slash commands of a place: `/name words` stands for the text of a file, where any of the agent programs would look
for it. Only the words are put in; what such a file would have a program run is not run."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from contextbase.agents.place_files import read_text, without_front_matter

__all__ = ["expanded_prompt"]

_COMMAND: Final = re.compile(r"/([A-Za-z0-9][A-Za-z0-9_.:-]{0,99})(?:\s+(.*))?\s*\Z", re.DOTALL)
_FOLDERS: Final = (".claude/commands", ".agents/commands", ".codex/prompts", ".opencode/commands", ".opencode/command")
_PLACES: Final = re.compile(r"\$(ARGUMENTS|[1-9])")
_LONGEST: Final = 64 << 10


def expanded_prompt(prompt: str, workspace: Path, commands: Mapping[str, str]) -> str:
    """The prompt, or what the command says that it names: of the session's configuration, or of the place."""
    found = _COMMAND.match(prompt)
    if found is None or ".." in found.group(1):
        return prompt
    name, words = found.group(1).replace(":", "/"), (found.group(2) or "").strip()
    if found.group(1) in commands:
        return _filled(commands[found.group(1)], words)
    for folder in _FOLDERS:
        text = read_text(workspace / folder / f"{name}.md", _LONGEST)
        if text is not None:
            return _filled(without_front_matter(text)[0], words)
    return prompt


def _filled(text: str, words: str) -> str:
    if words and not _PLACES.search(text):
        return f"{text}\n\n{words}"
    each = words.split()

    def word(found: re.Match[str]) -> str:
        place = found.group(1)
        if place == "ARGUMENTS":
            return words
        return each[int(place) - 1] if int(place) <= len(each) else ""

    return _PLACES.sub(word, text)
