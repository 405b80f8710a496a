"""A worker that adds one line after the other to a shared file, each from a fresh copy; to be killed at any moment.

python -m tests.support.sandbox_loop_worker FOLDER NAME TIMES   says each line once it is written in the sandbox
"""

import sys
from pathlib import Path

from tests.support.sandboxes import Site

__all__ = ["work"]


def work(folder: str, name: str, times: str) -> None:
    site = Site(Path(folder))
    worker = site.worker(name)
    for number in range(int(times)):
        worker.copy("a.txt")
        file = worker.path_of("a.txt")
        line = f"{name} wrote {number}"
        draft = worker.path.parent / "tmp/draft"
        draft.write_text(file.read_text().replace(f"section of {name}\n", f"section of {name}\n{line}\n"))
        draft.rename(file)
        print(line, flush=True)
        worker.sync_back()
    worker.close()


if __name__ == "__main__":
    work(*sys.argv[1:])
