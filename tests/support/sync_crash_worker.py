"""Syncs back again and again, killed one step later each time, and tells what was there then and after a new start.

python -m tests.support.sync_crash_worker FOLDER   one line of JSON per kill; the last sync ends by itself
"""

import json
import os
import signal
import sys
from pathlib import Path

from tests.support.sandboxes import TEXT, Site, lines_of, tree_of

__all__ = ["AFTER", "BEFORE"]

_STEPS = ("rename", "replace", "fsync", "unlink", "mkdir", "symlink", "fchmod")

BEFORE = {
    "merged.txt": lines_of(TEXT, line_28="THEIRS"),
    "count.crdt.json": '{"count": {"$counter": 3}}',
    "written.txt": TEXT,
    "deleted.txt": TEXT,
    "contested.txt": "theirs\n",
}
AFTER = {
    "merged.txt": lines_of(TEXT, line_2="MINE", line_28="THEIRS"),
    "count.crdt.json": '{"count": {"$counter": 13}}',
    "written.txt": "mine\n",
    "contested.txt": "theirs\n",
    "new/file.txt": "new\n",
    "link": "written.txt",
}


def prepare(site: Site) -> None:
    site.base.mkdir(parents=True)
    site.put("count.crdt.json", '{"count": {"$counter": 1}}')
    for name in ("merged.txt", "written.txt", "deleted.txt", "contested.txt"):
        site.put(name)
    worker = site.worker("one", "**")
    for name in ("merged.txt", "count.crdt.json", "contested.txt"):
        site.put(name, BEFORE[name])
    worker.path_of("merged.txt").write_text(lines_of(TEXT, line_2="MINE"))
    worker.path_of("count.crdt.json").write_text('{"count": {"$counter": 11}}')
    worker.path_of("written.txt").write_text("mine\n")
    worker.path_of("contested.txt").write_text("mine\n")
    worker.path_of("deleted.txt").unlink()
    worker.path_of("new").mkdir()
    worker.path_of("new/file.txt").write_text("new\n")
    worker.path_of("link").symlink_to("written.txt")
    worker.close()


def sync_until(site: Site, step: int) -> str:
    """In a process of its own; what it was killed before, '' if it came to its end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            worker = site.worker("one")
            _arm(step, write)
            worker.sync_back()
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read) as told:
        last = told.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the sync itself failed with {code}")
    return last


def _arm(step: int, write: int) -> None:
    left = step

    def armed(name: str) -> None:
        original = getattr(os, name)

        def counted(*arguments: object, **named: object) -> object:
            nonlocal left
            left -= 1
            if left == 0:
                os.write(write, name.encode())
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        setattr(os, name, counted)

    for name in _STEPS:
        armed(name)


def shown(folder: Path) -> dict[str, str]:
    return {path: node[1].decode() for path, node in tree_of(folder).items() if node[0] != "folder"}


def main(folder: Path) -> None:
    for step in range(1, 1000):
        site = Site(folder / str(step))
        prepare(site)
        killed_before = sync_until(site, step)
        found = shown(site.base)
        worker = site.worker("one")  # as the next process would
        synced = worker.sync_back()
        kept = [path.read_text() for path in (site.base / ".contextbase/conflicts").rglob("*.txt")]
        drafts = [path.name for path in (site.base / ".contextbase/incoming").iterdir()]
        line = {
            "step": step,
            "killed_before": killed_before,
            "found": found,
            "after": shown(site.base),
            "failed": [file.reason for file in synced.failed],
            "kept": kept,
            "drafts": drafts,
            "unsynced": worker.unsynced(),
        }
        worker.close()
        print(json.dumps(line), flush=True)
        if not killed_before:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
