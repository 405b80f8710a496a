"""Opencode's sessions are in one SQLite database. It works in HOME; the workspace gets a whole copy after each turn."""

import contextlib
import os
import shutil
from pathlib import Path

__all__ = ["OpencodeDatabase"]


class OpencodeDatabase:
    """`live`: where Opencode has it open. `kept`: the copy. All of it blocks."""

    def __init__(self, *, live: Path, kept: Path) -> None:
        self._live = live
        self._kept = kept

    def restore(self) -> None:
        """From the copy, if HOME is new."""
        self._live.parent.mkdir(parents=True, exist_ok=True)
        if self._live.exists() or self._kept.is_symlink() or not self._kept.is_file():
            return
        draft = self._live.with_name(f"{self._live.name}.new")
        shutil.copyfile(self._kept, draft)
        draft.replace(self._live)

    def keep(self) -> None:
        """Also while Opencode has it open: what is in its log alone is copied too."""
        import sqlite3  # not above: Pythons without it can still run other agents

        if not self._live.exists():
            return
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        draft = self._kept.with_name(f"{self._kept.name}.new")
        draft.unlink(missing_ok=True)
        with (
            contextlib.closing(sqlite3.connect(f"{self._live.as_uri()}?mode=ro", uri=True, timeout=30)) as source,
            contextlib.closing(sqlite3.connect(draft)) as target,
        ):
            source.backup(target)
            target.execute("pragma journal_mode=delete")
        _flush(draft)
        draft.replace(self._kept)
        _flush(self._kept.parent)


def _flush(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
