"""Lets a person edit a text in the editor of their choice."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from contextbase.errors import InvalidInput

__all__ = ["edited"]


def edited(text: str, *, name: str) -> tuple[str, Path]:
    """The text as $VISUAL or $EDITOR left it, and the file it is in, which is the caller's to remove."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    handle, path = tempfile.mkstemp(prefix="contextbase-", suffix=f"-{name}")
    file = Path(path)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as opened:
        opened.write(text)
    try:
        done = subprocess.run([*shlex.split(editor), path], check=False)
    except (OSError, ValueError) as error:
        file.unlink()
        raise InvalidInput(f"The editor {editor!r} could not be started: {error}. Set $EDITOR to another.") from None
    if done.returncode != 0:
        raise InvalidInput(
            f"The editor exited with code {done.returncode}, so nothing was sent. Your text is in {file}."
        )
    with file.open(encoding="utf-8", newline="") as opened:
        return opened.read(), file
