"""A sandbox as the engine sees it: the container's configuration, and what its labels say."""

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from contextbase.limits import ResourceLimits
from contextbase.sandbox.cgroups import ControlGroup, group_named
from contextbase.sandbox.model import HOME, WORKSPACE, SandboxId, SandboxInfo, SandboxSpec, SandboxState
from contextbase.workspaces.model import Owner

__all__ = ["HOLDER", "NODE_LABEL", "Container", "Mode", "configuration", "foundation", "size_limited"]

NODE_LABEL: Final = "contextbase.node"
_ID_LABEL: Final = "contextbase.id"
_MODE_LABEL: Final = "contextbase.mode"
_CREATED_LABEL: Final = "contextbase.created"
_LIMITS_LABEL: Final = "contextbase.limits"
_OWN_LABELS: Final = "contextbase.label."

_OWN_PROCESSES: Final = 2  # the init and the holder
_ONE_PERCENT: Final = 1e7  # of a processor, in NanoCpus
_OPEN_FILES: Final = 16_384
_TEMPORARY: Final = 1 << 30  # bytes in each of /tmp and HOME; they count as memory, too
_RUN: Final = 16 << 20
_FOLDER_OPTIONS: Final = "rw,exec,nosuid,nodev"

_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_HOLD: Final = f"PATH={_PATH}; exec sleep infinity"  # whatever PATH the sandbox has
HOLDER: Final = 65_534  # nobody: what keeps a container going is not the agent's to end or to look into

_STATES: Final = {
    "created": SandboxState.CREATED,
    "running": SandboxState.RUNNING,
    "paused": SandboxState.RUNNING,
    "restarting": SandboxState.RUNNING,
}


class Mode(StrEnum):
    FOLDER = "folder"
    CONTAINER = "container"
    ONE_COMMAND = "one-command"  # of `run`: nobody else's business


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """What its labels say, and how it was when we asked."""

    name: str
    mode: Mode
    limits: ResourceLimits
    info: SandboxInfo
    folder: Path | None
    is_size_limited: bool  # the engine sees to it that its writable layer does not grow too large
    group: ControlGroup | None  # while it runs, on this machine

    @classmethod
    def inspected(cls, name: str, found: Mapping[str, Any]) -> Self:
        folders = [Path(mount["Source"]) for mount in found["Mounts"] if mount["Destination"] == str(WORKSPACE)]
        return replace(
            cls.listed(name, found["Config"]["Labels"], found["State"]["Status"]),
            folder=folders[0] if folders else None,
            is_size_limited=bool(found["HostConfig"].get("StorageOpt")),
            group=group_named(found["Id"], found["State"]["Pid"]),
        )

    @classmethod
    def listed(cls, name: str, labels: Mapping[str, str], state: str) -> Self:
        mode = Mode(labels[_MODE_LABEL])
        own = {name.removeprefix(_OWN_LABELS): value for name, value in labels.items() if name.startswith(_OWN_LABELS)}
        return cls(
            name=name,
            mode=mode,
            limits=ResourceLimits(**json.loads(labels[_LIMITS_LABEL])),
            info=SandboxInfo(
                id=SandboxId(labels[_ID_LABEL]),
                driver="docker",
                state=_STATES.get(state, SandboxState.STOPPED),
                holds_files=mode is Mode.CONTAINER,
                labels=own,
                created_at=datetime.fromisoformat(labels[_CREATED_LABEL]),
            ),
            folder=None,
            is_size_limited=False,
            group=None,
        )

    @property
    def is_running(self) -> bool:
        return self.info.state is SandboxState.RUNNING


def configuration(
    spec: SandboxSpec, *, mode: Mode, node: str, owner: Owner, image: str, now: datetime, processors: int
) -> dict[str, Any]:
    """No capability, no privilege to gain, no network, limits on everything; the engine's own seccomp profile and
    masked paths stay. Nothing is logged: an agent could fill the disk with it."""
    limits = spec.limits
    host: dict[str, Any] = {
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "NetworkMode": "none",
        "Dns": ["127.0.0.1"],  # the machine's own name servers are nobody's business there
        "IpcMode": "private",
        "Init": True,
        "AutoRemove": False,
        "LogConfig": {"Type": "none"},
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": _OPEN_FILES, "Hard": _OPEN_FILES},
        ],
    }
    if limits.max_memory is not None:
        host["Memory"] = host["MemorySwap"] = limits.max_memory
    if limits.max_cpu is not None:
        host["NanoCpus"] = int(min(limits.max_cpu, 100 * processors) * _ONE_PERCENT)
    if limits.max_processes is not None:
        host["PidsLimit"] = limits.max_processes + _OWN_PROCESSES
    if limits.max_disk is not None:
        host["Ulimits"].append({"Name": "fsize", "Soft": limits.max_disk, "Hard": limits.max_disk})
    if mode is Mode.CONTAINER:
        # It comes back with the engine, with its files; a folder might not be mounted again by then.
        host["RestartPolicy"] = {"Name": "unless-stopped"}
    else:
        own = f"uid={owner.uid},gid={owner.gid},mode=0700"
        host |= {
            "ReadonlyRootfs": True,
            "Tmpfs": {
                "/tmp": f"{_FOLDER_OPTIONS},size={_TEMPORARY},mode=1777",  # noqa: S108 - inside
                "/run": f"{_FOLDER_OPTIONS},size={_RUN},{own}",
            },
            "Mounts": [
                _bind(spec.folder, WORKSPACE, is_read_only=spec.is_read_only),
                *(_bind(source, target, is_read_only=True) for source, target in spec.read_only),
            ],
        }
        if spec.home is None:
            host["Tmpfs"][str(HOME)] = f"{_FOLDER_OPTIONS},size={_TEMPORARY},{own}"
        else:
            host["Mounts"].append(_bind(spec.home, HOME, is_read_only=False))
    environment = {
        "PATH": _PATH,
        "HOME": str(HOME),
        "USER": "agent",
        "LANG": "C.UTF-8",
        **spec.environment,
    }
    return {
        "Image": image,
        "User": f"{HOLDER}:{HOLDER}",
        "Hostname": "sandbox",
        "WorkingDir": "/",
        "Entrypoint": ["/bin/sh", "-c", _HOLD],
        "Cmd": [],
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": {
            NODE_LABEL: node,
            _ID_LABEL: str(spec.id),
            _MODE_LABEL: mode,
            _CREATED_LABEL: now.isoformat(),
            _LIMITS_LABEL: json.dumps(asdict(limits)),
            **{_OWN_LABELS + name: value for name, value in spec.labels.items()},
        },
        "HostConfig": host,
    }


def _bind(source: Path | None, target: PurePosixPath, *, is_read_only: bool) -> dict[str, Any]:
    return {
        "Type": "bind",
        "Source": str(source),
        "Target": str(target),
        "ReadOnly": is_read_only,
        "BindOptions": {"Propagation": "rprivate"},
    }


def size_limited(config: Mapping[str, Any], size: int) -> dict[str, Any]:
    """With a writable layer of this many bytes at most, for storage drivers that can hold it to that."""
    return {**config, "HostConfig": {**config["HostConfig"], "StorageOpt": {"size": str(size)}}}


def foundation(owner: Owner) -> bytes:
    """A tar archive of the agent's own folders, for images that have none or another account's."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in (WORKSPACE, HOME):
            entry = tarfile.TarInfo(str(folder.relative_to("/")))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            entry.uid, entry.gid, entry.mtime = owner.uid, owner.gid, int(datetime.now(UTC).timestamp())
            archive.addfile(entry)
    return packed.getvalue()
