"""The history in git, and how long its processes take to answer."""

import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from bench.history_load import Commit

__all__ = ["GitHistory"]


class GitHistory:
    """A bare repository, packed as `git gc` leaves one that is well kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def build(cls, folder: Path, batches: Iterable[list[Commit]]) -> "GitHistory":
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True)
        made = cls(folder)
        with subprocess.Popen(["git", "fast-import", "--quiet"], cwd=folder, stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            seq = 0
            for batch in batches:
                for commit in batch:
                    seq += 1
                    process.stdin.write(_stream(seq, commit))
        assert process.returncode == 0
        made._run("gc", "--quiet")
        return made

    def revision(self, seq: int, head: int) -> str:
        """The commit that has that seq in contextbase."""
        return self._run("rev-parse", f"main~{head - seq}").decode().strip()

    def timed(self, *arguments: str) -> tuple[float, bytes]:
        """Seconds that a git process took, and what it wrote."""
        start = time.perf_counter()
        output = self._run(*arguments)
        return time.perf_counter() - start, output

    def _run(self, *arguments: str) -> bytes:
        environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_PAGER": "cat"}
        return subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, capture_output=True, check=True
        ).stdout


def _stream(seq: int, commit: Commit) -> bytes:
    who = f"agent{commit.author} <agent{commit.author}@example.org> {1_700_000_000 + seq} +0000"
    message = f"commit {seq}"
    parts = [f"commit refs/heads/main\ncommitter {who}\ndata {len(message)}\n{message}\n".encode()]
    for path, content in commit.contents.items():
        parts.append(f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
    return b"".join(parts)
