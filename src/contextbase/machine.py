"""What this machine can do, found out by trying."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.binaries import find_binaries
from contextbase.errors import ContextbaseError, MachineProblem
from contextbase.workspaces.backend_choice import choose_provider
from contextbase.workspaces.quotas import refusal_of_quotas
from contextbase.workspaces.syscalls import clone_file

__all__ = ["Finding", "examine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    name: str
    answer: Literal["yes", "no", "broken"]  # broken: contextbase does not work without it
    detail: str
    advice: str = ""


def examine(
    settings: Settings, *, problems: Mapping[str, str] | None = None, sandbox: Finding | None = None
) -> list[Finding]:
    """Every finding, in the order a reader cares; `problems` are those of the external database and bucket, `sandbox`
    is what came of making one."""
    problems = problems or {}
    probes: list[Callable[[Settings], Finding]] = [
        _data_folder,
        _overlay,
        _reflink,
        _quota,
        _bubblewrap,
        _docker,
        _git,
    ]
    outside = [_database(settings, problems.get("database")), _blobs(settings, problems.get("s3"))]
    findings = [*outside, *(probe(settings) for probe in probes)]
    return findings if sandbox is None else [*findings[:-3], sandbox, *findings[-3:]]


def _database(settings: Settings, problem: str | None) -> Finding:
    if settings.database.url is not None:
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
    is_new = settings.database.url is None and not DataFolder(settings.data.absolute()).holds_database()
    state = "nothing in it yet, " if is_new else ""
    detail = f"{settings.data.absolute()}, {state}{free / 1e9:.1f} GB free"
    if free < 1e9:
        return Finding(name="data folder", answer="broken", detail=detail, advice="Free some space: 1 GB is the least.")
    return Finding(name="data folder", answer="yes", detail=detail)


def _blobs(settings: Settings, problem: str | None) -> Finding:
    location = settings.storage.blob_location
    if location.bucket is None:
        advice = "For S3: CONTEXTBASE_BLOBS=s3://bucket/prefix with CONTEXTBASE_S3_* (contextbase config)."
        return Finding(name="s3", answer="no", detail="not used: large blobs go to the data folder", advice=advice)
    where = settings.s3.endpoint or "Amazon S3"
    if settings.s3.access_key_id is None or settings.s3.secret_access_key is None:
        advice = "Set CONTEXTBASE_S3_ACCESS_KEY_ID and CONTEXTBASE_S3_SECRET_ACCESS_KEY."
        return Finding(name="s3", answer="broken", detail=f"no keys for bucket {location.bucket}", advice=advice)
    detail = f"bucket {location.bucket} at {where}"
    return Finding(name="s3", answer="broken" if problem else "yes", detail=detail, advice=problem or "")


def _overlay(settings: Settings) -> Finding:
    """What workspaces will be, by making one where they will be."""
    wanted = None if settings.workspaces.provider == "auto" else settings.workspaces.provider
    with _place_like(settings) as folder:
        try:
            choice = choose_provider(folder, wanted=wanted)
        except MachineProblem as error:
            detail = error.message.replace(str(folder), str(folder.parent))
            return Finding(name="overlay", answer="broken", detail=detail)
        detail = choice.reason.replace(str(folder), str(folder.parent))
        if choice.xattr_kind is not None:
            return Finding(name="overlay", answer="yes", detail=detail)
    advice = "" if wanted else "For workspaces that cost a millisecond: root, Linux, a file system such as ext4 or XFS."
    return Finding(name="overlay", answer="no", detail=detail, advice=advice)


def _reflink(settings: Settings) -> Finding:
    with _place_like(settings) as folder:
        source, target = folder / "source", folder / "target"
        source.write_bytes(b"x" * 4096)
        with source.open("rb") as reader, target.open("wb") as writer:
            can_clone = clone_file(reader.fileno(), writer.fileno())
    if can_clone:
        return Finding(name="reflink", answer="yes", detail=f"files on the filesystem of {folder.parent} share blocks")
    advice = "XFS (reflink=1) and btrfs have it; elsewhere files are copied."
    return Finding(name="reflink", answer="no", detail=f"not on the filesystem of {folder.parent}", advice=advice)


def _quota(settings: Settings) -> Finding:
    most = f"{settings.workspaces.max_bytes / 1e9:.1f} GB and {settings.workspaces.max_files:,} changes"
    with _place_like(settings) as folder:
        refusal = refusal_of_quotas(folder)
    if refusal is None:
        detail = f"A workspace may have {most}. The file system enforces this while an agent writes."
        return Finding(name="quota", answer="yes", detail=detail)
    detail = f"A workspace may have {most}. This is only checked at a commit: {refusal}."
    advice = (
        "To keep a runaway agent from filling the disk, put the data folder on XFS mounted with pquota, or on any file "
        "system of its own."
    )
    return Finding(name="quota", answer="no", detail=detail, advice=advice)


@contextmanager
def _place_like(settings: Settings) -> Iterator[Path]:
    """A folder for a probe, on the file system of the data folder, which may not be there yet."""
    place = _nearest_existing(settings.data.absolute())
    with tempfile.TemporaryDirectory(dir=place if os.access(place, os.W_OK) else None) as folder:
        yield Path(folder)


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


def _docker(settings: Settings) -> Finding:
    program = shutil.which("docker")
    if program is None:
        return Finding(name="docker", answer="no", detail="not installed", advice="Install Docker Engine to use it.")
    address = settings.sandbox.docker_address
    problem = _run([program, "-H", address, "version", "--format", "{{.Server.Version}}"])
    if problem:
        advice = f"Start the Docker Engine at {address}, or say where it is: CONTEXTBASE_SANDBOX_DOCKER_ADDRESS."
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
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
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
