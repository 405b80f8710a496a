"""What a project wants to be there before an agent works: a script that is run once in each HOME."""

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path
from typing import Final

from contextbase.agents.model import AgentPlace
from contextbase.executor.calls import CallAnswer, CallHandler, CallRefused, ExecutorCall
from contextbase.executor.workspace_archive import archived

__all__ = ["SetupCalls"]

_DONE: Final = ".contextbase-setup"  # in HOME: which script was run there
_OWN: Final = frozenset({".contextbase"})  # in HOME: the executor's, and not the script's
_OUTPUT_KEPT: Final = 4096


class SetupCalls:
    def __init__(self, place: AgentPlace) -> None:
        self._place = place
        self._turn = asyncio.Lock()

    def handlers(self) -> dict[tuple[str, str], CallHandler]:
        return {("POST", "/setup"): self.setup, ("GET", "/setup/archive"): self.archive}

    async def setup(self, call: ExecutorCall) -> CallAnswer:
        """Harmless when that script was run here before."""
        body = await call.json()
        script, key, seconds = body.get("script"), body.get("key"), body.get("seconds")
        if not isinstance(script, str) or not isinstance(key, str) or not isinstance(seconds, int | float):
            raise CallRefused(400, "invalid_input", "A setup has a script, its key and its longest time.")
        done = self._place.home / _DONE
        async with self._turn:
            if await asyncio.to_thread(_text, done) == key:
                return CallAnswer(values={"is_new": False, "exit_code": 0, "output": ""})
            code, output = await self._run(script, seconds)
            if code == 0:
                await asyncio.to_thread(_put, done, key)
        return CallAnswer(values={"is_new": True, "exit_code": code, "output": output})

    async def archive(self, call: ExecutorCall) -> CallAnswer:
        """HOME, as the script left it."""
        del call
        return CallAnswer(pieces=archived(self._place.home, "", without=_OWN))

    async def _run(self, script: str, seconds: float) -> tuple[int, str]:
        with tempfile.TemporaryFile() as output:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-e", "-c", script),
                cwd=self._place.workspace,
                env=dict(self._place.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(seconds):
                    code = await process.wait()
            except TimeoutError:
                code = -signal.SIGKILL
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # also what it left running
                await process.wait()
            output.seek(max(0, os.fstat(output.fileno()).st_size - _OUTPUT_KEPT))
            return code, output.read(_OUTPUT_KEPT).decode(errors="replace")


def _text(place: Path) -> str:
    try:
        return place.read_text(errors="replace")
    except OSError:
        return ""


def _put(place: Path, text: str) -> None:
    draft = place.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(place)
