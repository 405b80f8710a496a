"""Agent programs without us, to compare with."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.support.agent_clis import cache_folder

from contextbase.agents.model import AgentPlace, AgentQuestion, AgentTurn, SteerMessage
from contextbase.agents.registry import adapter_named, default_model

__all__ = ["SPOKEN", "BareProgram"]

SPOKEN: Final = ("message.delta", "message.done")
"""Events with words of the agent."""

_KEEP_SECONDS: Final = 600.0


class BareProgram:
    """The program as its adapter drives it, on the machine itself: no sandbox, executor, channel, gateway or queue. It
    stays for the next turn, as ours does: both are measured warm."""

    def __init__(self, name: str, folder: Path, model_url: str, prompt: str) -> None:
        found = adapter_named(name)
        assert found is not None
        self._adapter = found
        self._prompt = prompt
        self._resume: str | None = None
        self._began = 0.0
        self._first: float | None = None
        self.steering: asyncio.Queue[SteerMessage] = asyncio.Queue()
        work, home = folder / "work", folder / "home"
        for one in (work / ".agent_data", home):
            one.mkdir(parents=True, exist_ok=True)
        self._place = AgentPlace(
            workspace=work,
            agent_data=work / ".agent_data",
            home=home,
            model_url=model_url,
            proxy_url="http://127.0.0.1:9",
            mcp_url="http://127.0.0.1:9",
            program_folders=(cache_folder(),),
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"},
        )

    async def first_word(self) -> float:
        turn = AgentTurn(
            run_id=str(uuid4()),
            attempt=1,
            provider=self._adapter.name,
            prompt=self._prompt,
            model=default_model(self._adapter.name) or "claude-sonnet-4-5",
            resume=self._resume,
            keep_seconds=_KEEP_SECONDS,
        )
        self._first, self._began = None, time.perf_counter()
        end = await self._adapter.run(turn, self._place, self, asyncio.Event())
        assert self._first is not None, end
        self._resume = end.sdk_session_id
        return self._first

    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        del data
        if kind in SPOKEN and self._first is None:
            self._first = time.perf_counter() - self._began

    async def ask(self, question: AgentQuestion) -> Mapping[str, Any]:
        raise AssertionError(question)

    async def end(self) -> None:
        await self._place.programs.end()
