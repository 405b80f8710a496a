"""What this machine can do, found out by trying."""

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from contextbase.config import Settings
from contextbase.db.binaries import find_binaries
from contextbase.errors import ContextbaseError

__all__ = ["Finding", "examine"]

_FICLONE: Final = 0x40049409
_CLONE_NEWUSER_AND_NEWNS: Final = 0x10000000 | 0x00020000


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    name: str
    answer: Literal["yes", "no", "broken"]  # broken: contextbase does not work without it
    detail: str
    advice: str = ""


def examine(settings: Settings, *, problems: Mapping[str, str] | None = None) -> list[Finding]:
    """Every finding, in the order a reader cares; `problems` are those of the external database and bucket."""
    problems = problems or {}
    probes: list[Callable[[Settings], Finding]] = [_data_folder, _overlay, _reflink, _bubblewrap, _docker, _git]
    outside = [_database(settings, problems.get("database")), _blobs(settings, problems.get("s3"))]
    return [*outside, *(probe(settings) for probe in probes)]


def _database(settings: Settings, problem: str | None) -> Finding:
    if settings.database_url is not None:
        detail = "external PostgreSQL (CONTEXTBASE_DATABASE_URL)"
        return Finding(name="database", answer="broken" if problem else "yes", detail=detail, advice=problem or "")
    try:
        binaries = find_binaries()
    except ContextbaseError as error:
        return Finding(name="database", answer="broken", detail="no embedded PostgreSQL", advice=error.message)
    return Finding(name="database", answer="yes", detail=f"embedded PostgreSQL {binaries.release}")


def _data_folder(settings: Settings) -> Finding:
    place = _nearest_existing(settings.data.absolute())
    if not os.access(place, os.W_OK | os.X_OK):
        advice = "Choose another with --data or CONTEXTBASE_DATA."
        return Finding(name="data folder", answer="broken", detail=f"{place} is not writable", advice=advice)
    free = shutil.disk_usage(place).free
    detail = f"{settings.data.absolute()}, {free / 1e9:.1f} GB free"
    if free < 1e9:
        return Finding(name="data folder", answer="broken", detail=detail, advice="Free some space: 1 GB is the least.")
    return Finding(name="data folder", answer="yes", detail=detail)


def _blobs(settings: Settings, problem: str | None) -> Finding:
    location = settings.blob_location
    if location.bucket is None:
        advice = "For S3: CONTEXTBASE_BLOBS=s3://bucket/prefix with CONTEXTBASE_S3_* (contextbase config)."
        return Finding(name="s3", answer="no", detail="not used: large blobs go to the data folder", advice=advice)
    where = settings.s3_endpoint or "Amazon S3"
    if settings.s3_access_key_id is None or settings.s3_secret_access_key is None:
        advice = "Set CONTEXTBASE_S3_ACCESS_KEY_ID and CONTEXTBASE_S3_SECRET_ACCESS_KEY."
        return Finding(name="s3", answer="broken", detail=f"no keys for bucket {location.bucket}", advice=advice)
    detail = f"bucket {location.bucket} at {where}"
    return Finding(name="s3", answer="broken" if problem else "yes", detail=detail, advice=problem or "")


def _overlay(settings: Settings) -> Finding:
    """Mounts for real, below the data folder's filesystem, in a mount namespace that goes with the probe."""
    if sys.platform != "linux":
        return Finding(name="overlay", answer="no", detail="only on Linux; workspaces will be clones or copies")
    place = _nearest_existing(settings.data.absolute())
    with tempfile.TemporaryDirectory(dir=place if os.access(place, os.W_OK) else None) as folder:
        child = os.fork()
        if child == 0:
            try:
                os._exit(_mount_overlay(Path(folder)))
            except OSError as error:
                os._exit(error.errno or errno.EIO)
            finally:
                os._exit(errno.EIO)  # whatever happens, the child must not go on as a second parent
        problem = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if problem == 0:
        return Finding(name="overlay", answer="yes", detail=f"mounts on {place}")
    advice = "Run as root, or allow user namespaces (kernel.unprivileged_userns_clone=1); copies work everywhere."
    return Finding(name="overlay", answer="no", detail=f"cannot be mounted: {os.strerror(problem)}", advice=advice)


def _mount_overlay(folder: Path) -> int:
    """0, or the errno of what failed; runs in a forked child and changes nothing outside its own namespaces."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("lower", "upper", "work", "merged"):
        (folder / name).mkdir()
    (folder / "lower" / "file").write_text("below")
    flags = _CLONE_NEWUSER_AND_NEWNS & ~(0x10000000 if os.geteuid() == 0 else 0)
    if libc.unshare(flags) != 0:
        return ctypes.get_errno()
    private_recursive = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE: nothing of this reaches the host
    if libc.mount(None, b"/", None, private_recursive, None) != 0:
        return ctypes.get_errno()
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    options += "" if os.geteuid() == 0 and flags == 0x00020000 else ",userxattr"
    if libc.mount(b"overlay", os.fsencode(folder / "merged"), b"overlay", 0, options.encode()) != 0:
        return ctypes.get_errno()
    return 0 if (folder / "merged" / "file").read_text() == "below" else 5


def _reflink(settings: Settings) -> Finding:
    if sys.platform == "darwin":
        return Finding(name="reflink", answer="yes", detail="APFS clones files")
    place = _nearest_existing(settings.data.absolute())
    try:
        import fcntl

        with tempfile.TemporaryDirectory(dir=place) as folder:
            source, target = Path(folder) / "source", Path(folder) / "target"
            source.write_bytes(b"x" * 4096)
            with source.open("rb") as reader, target.open("wb") as writer:
                fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
    except OSError as error:
        advice = "XFS (reflink=1) and btrfs have it; elsewhere files are copied."
        detail = f"not on the filesystem of {place} ({error.strerror})"
        return Finding(name="reflink", answer="no", detail=detail, advice=advice)
    return Finding(name="reflink", answer="yes", detail=f"on the filesystem of {place}")


def _bubblewrap(_: Settings) -> Finding:
    program = shutil.which("bwrap")
    if program is None:
        advice = "apt-get install bubblewrap" if sys.platform == "linux" else "Only on Linux; use docker."
        return Finding(name="bubblewrap", answer="no", detail="not installed", advice=advice)
    command = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    problem = _run(command)
    if problem:
        return Finding(name="bubblewrap", answer="no", detail=f"{program} does not work here: {problem}")
    return Finding(name="bubblewrap", answer="yes", detail=program)


def _docker(_: Settings) -> Finding:
    program = shutil.which("docker")
    if program is None:
        return Finding(name="docker", answer="no", detail="not installed", advice="Install Docker Engine to use it.")
    problem = _run([program, "version", "--format", "{{.Server.Version}}"])
    if problem:
        advice = "Start the Docker Engine, or point DOCKER_HOST at one."
        return Finding(name="docker", answer="no", detail="no engine answers", advice=advice)
    return Finding(name="docker", answer="yes", detail=program)


def _git(_: Settings) -> Finding:
    program = shutil.which("git")
    if program is None:
        advice = "apt-get install git (only for git connections and for the tests)"
        return Finding(name="git", answer="no", detail="not installed", advice=advice)
    return Finding(name="git", answer="yes", detail=program)


def _run(command: list[str]) -> str:
    """Empty when it worked, else its last words."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "DOCKER_HOST") if name in os.environ}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def _nearest_existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
