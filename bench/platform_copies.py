"""The files of a session by other ways: as a tar over `docker cp`, and plainly into a folder on the same disk."""

import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.support.docker_engine import DockerEngine, running_docker_engine

__all__ = ["OtherCopies", "other_copies"]


@contextmanager
def other_copies(folder: Path, *, files: int, content: bytes) -> Iterator["OtherCopies"]:
    source = folder / "source"
    for number in range(files):
        path = source / f"folder-{number % 20}" / f"file-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with running_docker_engine() as engine:
        yield OtherCopies(engine, folder)  # the engine takes its containers along


@dataclass
class OtherCopies:
    engine: DockerEngine
    folder: Path
    _into: list[float] = field(default_factory=list)
    _out: list[float] = field(default_factory=list)
    _plain: list[float] = field(default_factory=list)

    def take_turn(self) -> None:
        """Each time into a folder and a running container that are new and empty. Nothing is removed before the end:
        where many files were just removed, a file system may take far longer to make the next ones."""
        program = shutil.which("docker")
        assert program is not None, "The engine's command line is what we compare with: apt-get install docker.io"
        docker = [program, "-H", self.engine.address]
        source, number = self.folder / "source", len(self._into)
        command = [*docker, "run", "-d", "--network", "none", self.engine.image, "sleep", "6000"]
        container = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        self._into.append(_spent(lambda: _copy_in(docker, container, source)))
        self._out.append(_spent(lambda: _copy_out(docker, container, self.folder / f"out-{number}")))
        self._plain.append(_spent(lambda: _copy_plainly(source, self.folder / f"plain-{number}")))

    def figures(self) -> dict[str, float]:
        return {
            "docker_cp_in_ms": median(self._into),
            "docker_cp_out_ms": median(self._out),
            "plain_copy_ms": median(self._plain),
        }


def _copy_plainly(source: Path, target: Path) -> None:
    for path in source.glob("*/*"):
        (target / path.parent.name).mkdir(parents=True, exist_ok=True)
        (target / path.parent.name / path.name).write_bytes(path.read_bytes())


def _copy_in(docker: list[str], container: str, source: Path) -> None:
    with subprocess.Popen([*docker, "cp", "-", f"{container}:/workspace"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        with tarfile.open(fileobj=process.stdin, mode="w|") as tar:
            tar.add(source, arcname=".")
        process.stdin.close()
        assert process.wait() == 0


def _copy_out(docker: list[str], container: str, target: Path) -> None:
    with subprocess.Popen([*docker, "cp", f"{container}:/workspace", "-"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            tar.extractall(target, filter="data")
        assert process.wait() == 0


def _spent(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)
