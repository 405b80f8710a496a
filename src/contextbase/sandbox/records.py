"""What is known of a machine's sandboxes, on disk: a new driver finds them there."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from contextbase.data_folder import write_private
from contextbase.errors import NotFound
from contextbase.limits import ResourceLimits
from contextbase.sandbox.model import Network, SandboxId, SandboxSpec
from contextbase.sandbox.native.launcher.processes import started_at

__all__ = ["Records", "RunningHolder", "SandboxSpecRecord"]

_SPEC, _HOLDER = "spec.json", "holder.json"
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxSpecRecord:
    spec: SandboxSpec
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningHolder:
    """The first process of a sandbox, which is that one only if it was started then, and since the machine was."""

    process: int  # 0: commands run on the machine itself
    started: int  # in ticks since the machine was
    boot: str
    group: dict[str, str] | None  # the place of its control group: whoever comes later may be in another one itself

    is_stopped: bool = False

    @classmethod
    def of_this_boot(cls, process: int, started: int, group: dict[str, str] | None) -> "RunningHolder":
        return cls(process=process, started=started, boot=_this_boot(), group=group)

    def is_there(self) -> bool:
        if self.is_stopped or self.boot != _this_boot():
            return False
        return self.process == 0 or started_at(self.process) == self.started


def _this_boot() -> str:
    return _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else ""


class Records:
    """A folder for each sandbox. The files are ours alone to read: a spec's environment may hold secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, record: SandboxSpecRecord) -> SandboxSpecRecord:
        """As it is kept: one that was there before stays."""
        place = self._place(record.spec.id)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"spec": _spec_values(record.spec), "created_at": record.created_at.isoformat()})
        write_private(place / _SPEC, text, replace=False)
        return self.read(record.spec.id)

    def read(self, sandbox_id: SandboxId) -> SandboxSpecRecord:
        try:
            values = json.loads((self._place(sandbox_id) / _SPEC).read_bytes())
        except FileNotFoundError:
            raise NotFound(f"There is no sandbox {sandbox_id} here.") from None
        return SandboxSpecRecord(spec=_spec(values["spec"]), created_at=datetime.fromisoformat(values["created_at"]))

    def all(self) -> list[SandboxSpecRecord]:
        """Oldest first."""
        found = []
        for place in self._folder.glob(f"*/{_SPEC}"):
            try:
                found.append(self.read(SandboxId(place.parent.name)))
            except NotFound:  # removed just now
                continue
        return sorted(found, key=lambda record: (record.created_at, str(record.spec.id)))

    def holder(self, sandbox_id: SandboxId) -> RunningHolder | None:
        try:
            values = json.loads((self._place(sandbox_id) / _HOLDER).read_bytes())
        except FileNotFoundError:
            return None
        return RunningHolder(**values)

    def set_holder(self, sandbox_id: SandboxId, holder: RunningHolder | None) -> None:
        place = self._place(sandbox_id) / _HOLDER
        if holder is None:
            place.unlink(missing_ok=True)
        else:
            write_private(place, json.dumps(asdict(holder)))

    def remove(self, sandbox_id: SandboxId) -> None:
        place = self._place(sandbox_id)
        (place / _SPEC).unlink(missing_ok=True)  # from here on it is not there
        shutil.rmtree(place, ignore_errors=True)

    def _place(self, sandbox_id: SandboxId) -> Path:
        return self._folder / str(sandbox_id)


def _spec_values(spec: SandboxSpec) -> Mapping[str, Any]:
    return {
        "id": str(spec.id),
        "folder": None if spec.folder is None else str(spec.folder),
        "is_read_only": spec.is_read_only,
        "home": None if spec.home is None else str(spec.home),
        "read_only": [[str(source), str(target)] for source, target in spec.read_only],
        "limits": asdict(spec.limits),
        "network": spec.network,
        "environment": dict(spec.environment),
        "labels": dict(spec.labels),
    }


def _spec(values: dict[str, Any]) -> SandboxSpec:
    return SandboxSpec(
        id=SandboxId(values["id"]),
        folder=None if values["folder"] is None else Path(values["folder"]),
        is_read_only=values["is_read_only"],
        home=None if values.get("home") is None else Path(values["home"]),
        read_only=tuple((Path(source), PurePosixPath(target)) for source, target in values.get("read_only", ())),
        limits=ResourceLimits(**values["limits"]),
        network=Network(values["network"]),
        environment=values["environment"],
        labels=values["labels"],
    )
