"""What a sandbox knows about itself: `.sandbox-metadata.json`, and the journal of a sync that is under way."""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from contextbase.data_folder import write_private
from contextbase.durable import flush, flush_folder
from contextbase.errors import Damaged, InvalidInput
from contextbase.ids import ContentHash, TreePath
from contextbase.merge import EntryKind
from contextbase.standalone.model import FileRecord, KeptVersion

__all__ = ["METADATA_FILE", "Intent", "Journal", "Metadata"]

METADATA_FILE: Final = ".sandbox-metadata.json"
_BROKEN: Final = (ValueError, KeyError, TypeError, AttributeError, InvalidInput)


@dataclass(kw_only=True, slots=True)
class Metadata:
    sandbox_id: str  # this sandbox and no other, also none of a worker with the same name
    worker_id: str
    task_id: str
    base_dir: str
    created_at: datetime
    files: dict[TreePath, FileRecord] = field(default_factory=dict)  # what the worker's versions are made from
    folders: set[TreePath] = field(default_factory=set)  # that came with them
    kept: dict[TreePath, KeptVersion] = field(default_factory=dict)
    copying: list[TreePath] = field(default_factory=list)  # on their way in; a crash left them in any state
    is_finished: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, sandbox: Path) -> "Metadata":
        """`Damaged` when it is not what was written; `FileNotFoundError` when there is none."""
        try:
            return _parsed(json.loads((sandbox / METADATA_FILE).read_text(encoding="utf-8")))
        except _BROKEN as error:
            raise Damaged(
                f"{sandbox / METADATA_FILE} cannot be read ({error}). Save what you need from {sandbox}, "
                "then `contextbase worker clean --discard` removes it."
            ) from error

    def write(self, sandbox: Path) -> None:
        written = {
            "sandbox_id": self.sandbox_id,
            "worker_id": self.worker_id,
            "task_id": self.task_id,
            "base_dir": self.base_dir,
            "created_at": self.created_at.isoformat(),
            "files": {path: _plain(record) for path, record in self.files.items()},
            "folders": sorted(self.folders),
            "kept": {path: [kept.content and str(kept.content), kept.at] for path, kept in self.kept.items()},
            "copying": self.copying,
            "is_finished": self.is_finished,
            "counts": self.counts,
        }
        write_private(sandbox / METADATA_FILE, json.dumps(written))


def _parsed(read: dict[str, Any]) -> Metadata:
    return Metadata(
        sandbox_id=read["sandbox_id"],
        worker_id=read["worker_id"],
        task_id=read["task_id"],
        base_dir=read["base_dir"],
        created_at=datetime.fromisoformat(read["created_at"]),
        files={TreePath(path): _record(item) for path, item in read["files"].items()},
        folders=set(map(TreePath, read["folders"])),
        kept={
            TreePath(path): KeptVersion(content=ContentHash.parse(content) if content else None, at=at)
            for path, (content, at) in read["kept"].items()
        },
        copying=list(map(TreePath, read["copying"])),
        is_finished=read["is_finished"],
        counts=Counter(read["counts"]),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """A draft is about to be moved to its place in the base folder. Once it has left its old place, it has happened."""

    path: TreePath
    draft: str
    before: ContentHash | None  # what stood there
    record: FileRecord  # the worker's version that the draft was made from


class Journal:
    """One line per intent, on the disk before the move. Empty but while a sync is under way, or after a crash."""

    def __init__(self, sandbox: Path) -> None:
        self._file = sandbox / ".sync-journal"

    def append(self, intent: Intent) -> None:
        self._append(
            {
                "path": intent.path,
                "draft": intent.draft,
                "before": intent.before and str(intent.before),
                "record": _plain(intent.record),
            }
        )

    def cancel(self, draft: str) -> None:
        """It will not be moved; say so before it is discarded."""
        self._append({"cancelled": draft})

    def read(self) -> list[Intent]:
        """Those not cancelled. A last line without its end was never acted on."""
        try:
            lines = self._file.read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return []
        try:
            read = [json.loads(line) for line in lines]
            cancelled = {line["cancelled"] for line in read if "cancelled" in line}
            intents = [_intent(line) for line in read if "cancelled" not in line]
        except _BROKEN as error:
            raise Damaged(f"{self._file} cannot be read: {error}. Compare the sandbox and the base by hand.") from error
        return [intent for intent in intents if intent.draft not in cancelled]

    def clear(self) -> None:
        self._file.unlink(missing_ok=True)
        flush_folder(self._file.parent)

    def _append(self, line: dict[str, object]) -> None:
        is_new = not self._file.exists()
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            flush(file.fileno())
        if is_new:
            flush_folder(self._file.parent)


def _intent(read: dict[str, Any]) -> Intent:
    return Intent(
        path=TreePath(read["path"]),
        draft=str(TreePath(read["draft"])),
        before=ContentHash.parse(read["before"]) if read["before"] else None,
        record=_record(read["record"]),
    )


def _plain(record: FileRecord) -> list[object]:
    return [record.kind, str(record.content), record.mode]


def _record(read: list[Any]) -> FileRecord:
    kind, content, mode = read
    return FileRecord(kind=EntryKind(kind), content=ContentHash.parse(content), mode=int(mode))
