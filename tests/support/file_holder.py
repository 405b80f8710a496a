"""A program that keeps files open in a folder: python -m tests.support.file_holder FOLDER

Reads orders from its input, one a line, and answers each with `ok` or `no`, and what it read: `read PATH` and
`append PATH` open a file, `more PATH TEXT` writes to it, `again PATH` reads on, `close PATH` closes it.
"""

import subprocess
import sys
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["FileHolder"]

_REPOSITORY = Path(__file__).parents[2]


class FileHolder:
    """The program, as a test talks to it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.support.file_holder", str(folder)]
        pipe = subprocess.PIPE
        self._program = subprocess.Popen(command, cwd=_REPOSITORY, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._program.communicate(timeout=60)  # it ends with its input

    def ask(self, order: str) -> str | None:
        """What it read, or None if it could not do it."""
        assert self._program.stdin
        assert self._program.stdout
        self._program.stdin.write(f"{order}\n")
        self._program.stdin.flush()
        word, _, answer = self._program.stdout.readline().rstrip("\n").partition(" ")
        return answer if word == "ok" else None


def _hold(folder: Path) -> None:
    held: dict[str, FileIO] = {}
    for line in sys.stdin:
        order, path, *rest = line.rstrip("\n").split(" ", 2)
        answer = b""
        try:
            if order in ("read", "append"):
                held[path] = FileIO(folder / path, "r" if order == "read" else "a")
            elif order == "more":
                held[path].write(rest[0].encode() + b"\n")
            elif order == "again":
                held[path].seek(0)
                answer = held[path].readall()
            else:
                held.pop(path).close()
        except OSError:
            sys.stdout.write("no\n")
        else:
            sys.stdout.write(f"ok {answer.hex()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _hold(Path(sys.argv[1]))
