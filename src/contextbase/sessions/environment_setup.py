"""Runs the setup scripts of projects on this machine: once, and then what came of it is unpacked into each new HOME."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from contextbase.errors import ContextbaseError, SetupFailed
from contextbase.ids import ProjectId, new_uuid
from contextbase.sandbox.model import HOME, SandboxId
from contextbase.sandbox.ports import SandboxDriver
from contextbase.sessions.environments import ProjectEnvironment
from contextbase.sessions.executor_link import ExecutorLink
from contextbase.threads import in_thread

__all__ = ["EnvironmentSetup"]

_log = logging.getLogger(__name__)

_LONGEST: Final = 1800.0  # seconds
_PIECE: Final = 1 << 20
_OUTPUT_TOLD: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentSetup:
    folder: Path  # of archives of HOME, by project and by the key of the environment
    most_bytes: int = 20 << 30  # of one archive; what is larger is not kept, and the script runs for each session
    _turns: WeakValueDictionary[Path, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)

    async def seed(
        self, driver: SandboxDriver, sandbox_id: SandboxId, project_id: ProjectId, wanted: ProjectEnvironment
    ) -> None:
        """Unpack what the script made for another session into a HOME that is new, before anything runs in it."""
        archive = self._archive(project_id, wanted)
        has_script = bool(wanted.setup)
        if has_script and await in_thread(archive.is_file):
            await driver.copy_in(sandbox_id, HOME, _read(archive))

    async def run(self, link: ExecutorLink, project_id: ProjectId, wanted: ProjectEnvironment, *, is_new: bool) -> None:
        """Run the script, unless it was run in this HOME. Only what it makes of a HOME that is new is kept for others:
        no agent has touched that. Raises `SetupFailed`."""
        if not wanted.setup:
            return
        archive = self._archive(project_id, wanted)
        async with self._turns.setdefault(archive, asyncio.Lock()):
            body = {"script": wanted.setup, "key": wanted.key, "seconds": _LONGEST}
            answer = (await link.call("POST", "/setup", body, patience=_LONGEST + 60)).checked()
            if answer.get("exit_code") != 0:
                said = str(answer.get("output", "")).strip()[-_OUTPUT_TOLD:]
                raise SetupFailed(
                    f"The project's setup script ended with {answer.get('exit_code')}. Mend it with `contextbase "
                    f"project environment`. It said: {said or 'nothing'}"
                )
            if is_new and answer.get("is_new"):
                try:
                    await self._keep(link, archive)
                except (ContextbaseError, OSError) as error:
                    _log.warning("what a setup script made is not kept", extra={"error": str(error)})

    async def _keep(self, link: ExecutorLink, archive: Path) -> None:
        await in_thread(_make_folder, archive.parent)
        draft = archive.with_name(f"{new_uuid()}.draft")
        size = 0
        try:
            with await in_thread(draft.open, "xb") as file:
                async for piece in link.download("/setup/archive"):
                    size += len(piece)
                    if size > self.most_bytes:
                        raise OSError(f"it is larger than {self.most_bytes} bytes")
                    await in_thread(file.write, piece)
                await in_thread(_settle, file.fileno(), draft, archive)
        finally:
            await in_thread(draft.unlink, missing_ok=True)

    def _archive(self, project_id: ProjectId, wanted: ProjectEnvironment) -> Path:
        return self.folder / str(project_id) / f"{wanted.key}.tar"


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _settle(number: int, draft: Path, archive: Path) -> None:
    """Whole, or not there. Those of earlier scripts go."""
    os.fsync(number)
    draft.replace(archive)
    for other in archive.parent.glob("*.tar"):
        if other != archive:
            other.unlink(missing_ok=True)


async def _read(archive: Path) -> AsyncIterator[bytes]:
    with await in_thread(archive.open, "rb") as file:
        while piece := await in_thread(file.read, _PIECE):
            yield piece
