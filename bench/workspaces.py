"""Workspaces, measured beside git and cp: `python -m bench.workspaces --files 10000 [--json]`. As root.

2 KB files in folders of 100, on the disk that holds `--folder`. Medians of one run. create_ms, complete_ms,
commit_floor_ms and refresh_… are the server's, with an embedded database on the same disk; all others are of the
folders themselves, with snapshots from memory. refresh_100_changes_50k_ms is of a project of 50,000 files.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final
from uuid import uuid4

from tests.support.snapshots import MemorySnapshots
from tests.support.workspaces import Site, new_site, unmount_all

from bench.workspaces_served import measure_refresh, measure_served
from contextbase.workspaces.layers import read_layers
from contextbase.workspaces.overlay import XattrKind, overlay_options
from contextbase.workspaces.stacks import chain_to
from contextbase.workspaces.syscalls import mount_overlay, unmount

_SIZE: Final = 2048
_LAYERS: Final = 10
_AGENTS: Final = 100
_CHANGES: Final = 10
_LARGE: Final = "large.bin"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--more-files", type=int, default=50_000, help="of the larger project that is refreshed")
    options.add_argument("--rounds", type=int, default=50, help="of what is measured several times")
    options.add_argument("--crowd", type=int, default=1000, help="workspaces that are made at once: thousand_create_s")
    options.add_argument("--folder", type=Path, help="where to measure (a temporary folder)")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        try:
            folder.chmod(0o711)  # the database's own account passes through
            measured = measure(
                folder,
                arguments.files,
                arguments.more_files,
                rounds=arguments.rounds,
                crowd=arguments.crowd,
            )
            figures = asyncio.run(measured)
        finally:
            unmount_all(folder)
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for key, value in figures.items():
            print(f"{key:28}{value:>12,}")


async def measure(folder: Path, files: int, more_files: int, *, rounds: int, crowd: int) -> dict[str, float]:
    """The stack has ten layers: what a project looks like that is worked on."""
    random = Random(1)
    snapshots = MemorySnapshots()
    paths = [f"{number // 100:04}/{number:06}.txt" for number in range(files)]
    snapshots.commit({_LARGE: random.randbytes(1 << 20), **{path: random.randbytes(_SIZE) for path in paths}})
    for _ in range(_LAYERS - 1):
        snapshots.commit({path: random.randbytes(_SIZE) for path in random.sample(paths, 10)})
    site = new_site(folder / "site", "overlay", snapshots)
    began = time.perf_counter()
    for seq in range(1, _LAYERS + 1):
        await site.provider.sync_lower(snapshots.key(seq))
    figures: dict[str, float] = {"files": files, "mirror_s": round(time.perf_counter() - began, 2)}
    os.sync()  # what was written before is not to be paid for here
    figures |= await _creating(site, folder, rounds)
    served = await measure_served(folder / "served", paths, random, rounds=rounds)
    figures |= {f"{name}_ms": _median(took) for name, took in served.items()}
    refreshed = await measure_refresh(folder / "refreshed", files, random)
    larger = await measure_refresh(folder / "refreshed-more", more_files, random)
    figures |= {"refresh_100_changes_ms": _median(refreshed), "refresh_100_changes_50k_ms": _median(larger)}
    figures |= await _storage(site, paths, random)
    plain = folder / "plain"
    workspace = await site.create()
    figures["cp_ms"] = _took(lambda: subprocess.run(["cp", "-a", workspace.path, plain], check=True))
    figures |= await _detecting(site, plain, paths, random, rounds)
    with _floor_folders(folder) as place:
        _mount(place, _stack(site))
        figures |= _reading(plain, workspace.path, place / "merged", random.sample(paths, min(1000, files)))
    await site.provider.cleanup(workspace.id)
    return figures | await _crowd(site, crowd)


async def _creating(site: Site, folder: Path, rounds: int) -> dict[str, float]:
    await site.provider.cleanup((await site.create()).id)
    created, removed, floor = [], [], []
    lower = _stack(site)
    for _ in range(rounds):
        with _floor_folders(folder) as place:
            floor.append(_took(lambda place=place: _mount(place, lower)))
        began = time.perf_counter()
        workspace = await site.create()
        created.append((time.perf_counter() - began) * 1000)
        (workspace.path / "note.txt").write_bytes(b"x" * _SIZE)
        began = time.perf_counter()
        await site.provider.cleanup(workspace.id)
        removed.append((time.perf_counter() - began) * 1000)
    return {
        "mount_floor_ms": _median(floor),
        "create_no_db_ms": _median(created),
        "remove_ms": _median(removed),
    }


async def _storage(site: Site, paths: list[str], random: Random) -> dict[str, float]:
    """The files of a mirror and its workspaces against those of one copy plus the changed ones, as the disk counts;
    folders, which cost a block each, apart."""
    files, _ = _blocks(site.root)
    made = []
    for _ in range(_AGENTS):
        workspace = await site.create()
        (workspace.path / random.choice(paths)).write_bytes(random.randbytes(_SIZE))
        made.append(workspace)
    files_after, folders = _blocks(site.root)
    own, own_folders = _blocks(site.root / "mirror")
    for workspace in made:
        await site.provider.cleanup(workspace.id)
    changed = _AGENTS * 4096
    return {
        "storage_ratio_100_agents": round(files_after / (files + changed), 4),
        "folders_kb_per_agent": round((folders - own_folders) / _AGENTS / 1024, 1),
        "mirror_mb": round(own / 2**20, 1),
    }


async def _detecting(site: Site, plain: Path, paths: list[str], random: Random, rounds: int) -> dict[str, float]:
    git = _git_repository(plain)
    worktree = plain.with_name("worktree")
    worktree_ms = _took(lambda: git("worktree", "add", "-q", str(worktree)))
    workspace = await site.create()
    for path in random.sample(paths, _CHANGES):
        content = random.randbytes(_SIZE)
        for root in (workspace.path, worktree):
            (root / path).write_bytes(content)
    assert len((await site.detect(workspace)).changes) == _CHANGES
    detect = await _median_of(lambda: site.detect(workspace), rounds)
    status = _median([_took(lambda: git("-C", str(worktree), "status", "--porcelain")) for _ in range(5)])
    await site.provider.cleanup(workspace.id)
    return {"git_worktree_ms": worktree_ms, "detect_ms": detect, "git_status_ms": status}


def _reading(plain: Path, workspace: Path, floor: Path, paths: list[str]) -> dict[str, float]:
    """Against the plain folder, by turns and as the agent: the first reading after the kernel forgot all names, the
    ones after it, and whole files of 1 MB; also what a bare mount of the same layers takes for the second."""
    took: dict[tuple[str, Path], list[float]] = {}
    for _ in range(9):
        for root in (plain, workspace, floor):
            _forget()
            with _as_owner_of(plain):
                took.setdefault(("first", root), []).append(_took(lambda root=root: _read(root, paths)))
                warm = [_took(lambda root=root: _read(root, paths)) for _ in range(3)]
                took.setdefault(("warm", root), []).extend(warm)
                large = root / _LARGE
                took.setdefault(("1mb", root), []).append(
                    _took(lambda large=large: [large.read_bytes() for _ in range(20)])
                )

    def ratio(what: str, root: Path) -> float:
        return round(_median(took[what, root]) / _median(took[what, plain]), 3)

    return {
        "read_first_ratio": ratio("first", workspace),
        "read_warm_ratio": ratio("warm", workspace),
        "read_warm_floor_ratio": ratio("warm", floor),
        "read_1mb_ratio": ratio("1mb", workspace),
    }


@contextmanager
def _as_owner_of(folder: Path) -> Iterator[None]:
    status = folder.stat()
    os.setegid(status.st_gid)
    os.seteuid(status.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


async def _crowd(site: Site, number: int) -> dict[str, float]:
    began = time.perf_counter()
    made = await asyncio.gather(*(site.create() for _ in range(number)))
    took = time.perf_counter() - began
    for workspace in made:
        await site.provider.cleanup(workspace.id)
    return {"thousand_create_s": round(took, 2)}


def _stack(site: Site) -> list[str]:
    snapshots = site.snapshots
    mirror = site.mirrors.folder_of(snapshots.head)
    chain = chain_to(snapshots.head.seq, read_layers(mirror / "layers"))
    assert chain is not None
    assert len(chain) == _LAYERS
    return [*(str(layer.tree) for layer in reversed(chain)), str(mirror / "empty")]


@contextmanager
def _floor_folders(folder: Path) -> Iterator[Path]:
    place = folder / uuid4().hex
    for name in ("upper", "work", "merged"):
        (place / name).mkdir(parents=True)
    yield place
    unmount(str(place / "merged"))
    shutil.rmtree(place)


def _mount(place: Path, lower: list[str]) -> None:
    mount_overlay(
        str(place / "merged"),
        lower=lower,
        upper=str(place / "upper"),
        work=str(place / "work"),
        options=overlay_options(XattrKind.TRUSTED),
    )


def _git_repository(folder: Path) -> Callable[..., None]:
    def git(*arguments: str) -> None:
        # the folder is the agents', and git works in no folder of another account unless told to
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "safe.directory=*")
        subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, stdout=subprocess.DEVNULL)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "all")
    return git


def _read(root: Path, paths: list[str]) -> None:
    base = str(root)
    for path in paths:
        descriptor = os.open(f"{base}/{path}", os.O_RDONLY)
        os.read(descriptor, _SIZE)
        os.close(descriptor)


def _forget() -> None:
    """Names and inodes, not contents: those would measure the disk."""
    Path("/proc/sys/vm/drop_caches").write_text("2")


def _blocks(folder: Path) -> tuple[int, int]:
    """Of files, of folders; mounts show the same files again and do not count, nor do further links to a file."""
    of_files: dict[int, int] = {}
    of_folders = 0
    for parent, folders, files in os.walk(folder):
        for status in (os.lstat(f"{parent}/{name}") for name in files):
            of_files[status.st_ino] = status.st_blocks
        of_folders += sum(os.lstat(f"{parent}/{name}").st_blocks for name in folders)
        if Path(parent).name == "workspaces":
            folders.clear()
    return sum(of_files.values()) * 512, of_folders * 512


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return round((time.perf_counter() - began) * 1000, 3)


async def _median_of(work: Callable[[], Awaitable[object]], rounds: int) -> float:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        took.append((time.perf_counter() - began) * 1000)
    return _median(took)


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 3)


if __name__ == "__main__":
    main()
