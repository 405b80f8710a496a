"""What works on this machine and what does not, with what to do about it: `contextbase doctor`, and the page of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from contextbase.bootstrap.machines import known_machines
from contextbase.bootstrap.restore import problems_outside
from contextbase.bootstrap.sandboxes import sandbox_kind
from contextbase.bootstrap.session_alerts import session_alerts
from contextbase.config import Settings
from contextbase.errors import ContextbaseError, Unavailable
from contextbase.ids import Clock
from contextbase.machine import Finding, examine
from contextbase.machines.states import machine_states
from contextbase.threads import ended, in_thread

__all__ = ["Examination", "ExaminationRun", "findings_of"]

_PATIENCE: Final = 20.0  # seconds
_FRESH: Final = timedelta(minutes=5)  # for who comes back after the patience was over


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    checked_at: datetime
    findings: tuple[Finding, ...]


class ExaminationRun:
    """Examines the machine of a running server, once for all who ask meanwhile."""

    def __init__(
        self, examined: Callable[[], Awaitable[list[Finding]]], *, clock: Clock, patience: float = _PATIENCE
    ) -> None:
        self._examined = examined
        self._clock = clock
        self._patience = patience
        self._under_way: asyncio.Task[Examination] | None = None

    async def result(self) -> Examination:
        """A new one, or the one under way. `Unavailable` if it takes too long: it goes on, for who asks soon."""
        if self._under_way is None or self._is_outdated(self._under_way):
            self._under_way = asyncio.create_task(self._run())
        run = self._under_way
        await asyncio.wait({run}, timeout=self._patience)
        if not run.done():
            raise Unavailable(
                f"The checks of this machine take longer than {self._patience:g} seconds. Ask again in a minute; if it "
                "happens again, run `contextbase doctor` on the machine and see which check it stops at."
            )
        if self._under_way is run:
            self._under_way = None
        return run.result()

    def _is_outdated(self, run: asyncio.Task[Examination]) -> bool:
        """Whether it failed, or ended long ago, and nobody was there to hear of it."""
        if not run.done():
            return False
        return run.exception() is not None or self._clock.now() - run.result().checked_at > _FRESH

    async def close(self) -> None:
        if (run := self._under_way) is not None:
            run.cancel()
            await ended(run)

    async def _run(self) -> Examination:
        findings = await self._examined()
        return Examination(checked_at=self._clock.now(), findings=tuple(findings))


async def findings_of(settings: Settings) -> list[Finding]:
    """Everything that can be found out, in the order a reader cares. What blocks runs in a thread."""
    try:
        sandbox = Finding(name="sandbox", answer="yes", detail=await sandbox_kind(settings))
    except ContextbaseError as error:
        advice = "Install bubblewrap or Docker. Everything else works without."
        sandbox = Finding(name="sandbox", answer="no", detail=error.message, advice=advice)
    problems = await problems_outside(settings)
    findings = await in_thread(examine, settings, problems=problems, sandbox=sandbox)
    findings.append(_machines(await known_machines(settings)))
    alerts = await session_alerts(settings)
    return findings if alerts is None else [*findings, _sessions(alerts)]


def _sessions(alerts: Mapping[str, str]) -> Finding:
    """`alerts`: by session."""
    if not alerts:
        return Finding(name="sessions", answer="yes", detail="nothing keeps their files from being stored")
    session, alert = next(iter(alerts.items()))
    others = f" So it is with {len(alerts) - 1} more." if len(alerts) > 1 else ""
    advice = f"Mend what it says; then the files are stored by themselves. More: contextbase session show {session}"
    return Finding(name="sessions", answer="broken", detail=f"{session}: {alert}{others}", advice=advice)


def _machines(states: Mapping[str, str] | None) -> Finding:
    """`states`: by name; None: nobody but the server of this folder knows them."""
    if states is None:
        return Finding(name="machines", answer="yes", detail="this one alone, while its server runs")
    lost = [name for name, state in states.items() if state == "lost"]
    return Finding(
        name="machines",
        answer="no" if lost or not states else "yes",
        detail=machine_states(states),
        advice=f"Start {lost[0]} again, or give it up: contextbase machines forget {lost[0]}" if lost else "",
    )
