"""The same edits with git: N clones of one bare repository, push, on reject fetch and rebase, up to 20 tries."""

import subprocess
import threading
import time
from pathlib import Path
from random import Random
from typing import Final

from bench.landing_load import Edit, first_files

__all__ = ["measure_git"]

_TRIES: Final = 20


def measure_git(folder: Path, agents: int, seconds: float, conflicts: float) -> dict[str, float]:
    origin = folder / "origin.git"
    _git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    seed = _clone(folder, "seed")
    for path, text in first_files(agents).items():
        (seed / path).parent.mkdir(exist_ok=True)
        (seed / path).write_text(text)
    _git(seed, "add", ".")
    _git(seed, "commit", "--quiet", "--message=first")
    _git(seed, "push", "--quiet", "origin", "HEAD:main")
    clones = [_clone(folder, f"clone{number:04}") for number in range(agents)]
    landed, given_up = [0] * agents, [0] * agents
    start = time.perf_counter()

    def agent(number: int) -> None:
        random, turn = Random(number), 0
        while time.perf_counter() < start + seconds:
            turn += 1
            _edit(clones[number], Edit.of(number, turn, random, conflicts))
            if _push(clones[number]):
                landed[number] += 1
            else:
                given_up[number] += 1

    threads = [threading.Thread(target=agent, args=(number,)) for number in range(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    return {"git_lands_per_second": round(sum(landed) / took, 2), "git_given_up": sum(given_up)}


def _edit(clone: Path, edit: Edit) -> None:
    path = clone / edit.path
    path.write_text(edit.applied_to(path.read_text()))
    _git(clone, "commit", "--quiet", "--all", "--allow-empty", f"--message={edit.value}")


def _push(clone: Path) -> bool:
    """Whether it landed. A rebase that conflicts, or the 20th reject, gives up: the edit is dropped."""
    for _ in range(_TRIES):
        if _git(clone, "push", "--quiet", "origin", "HEAD:main", check=False):
            return True
        _git(clone, "fetch", "--quiet", "origin")
        if not _git(clone, "rebase", "--quiet", "origin/main", check=False):
            _git(clone, "rebase", "--abort", check=False)
            break
    _git(clone, "fetch", "--quiet", "origin")
    _git(clone, "reset", "--quiet", "--hard", "origin/main")
    return False


def _clone(folder: Path, name: str) -> Path:
    _git(folder, "clone", "--quiet", str(folder / "origin.git"), name)
    clone = folder / name
    _git(clone, "config", "user.name", name)
    _git(clone, "config", "user.email", f"{name}@example.org")
    _git(clone, "config", "core.fsync", "committed")
    return clone


def _git(folder: Path, *arguments: str, check: bool = True) -> bool:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.decode()}")
    return done.returncode == 0
