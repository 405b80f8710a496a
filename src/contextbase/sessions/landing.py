"""What becomes of a run's work: it lands through the gate, or stays in the session's folder for a person to decide."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from contextbase.gate.model import ChangeStatus
from contextbase.ids import Seq
from contextbase.sessions.model import AgentRun, AgentSession, Land
from contextbase.vocabulary import LandingState
from contextbase.workspaces.checkpoints import Committed, Wish
from contextbase.workspaces.service import WorkspaceService

__all__ = ["LandingReport", "RunLanding"]

_MOST_PATHS: Final = 200
_LONGEST_MESSAGE: Final = 500
_TOLD: Final = (ChangeStatus.IN_REVIEW, ChangeStatus.SUPERSEDED, ChangeStatus.REFUSED)


@dataclass(frozen=True, kw_only=True, slots=True)
class LandingReport:
    state: LandingState
    seq: Seq | None = None
    counts: Mapping[str, int] | None = None  # changes by what became of them
    paths: tuple[Mapping[str, str], ...] = ()  # the first of them
    held_back: int = 0  # files that the gate would not take: credentials, odd names
    because: str | None = None  # why it waits

    def to_json(self) -> dict[str, object]:
        shown: dict[str, object] = {"state": str(self.state)}
        told = {
            "seq": self.seq,
            "counts": dict(self.counts or {}),
            "paths": [dict(path) for path in self.paths],
            "held_back": self.held_back,
            "because": self.because,
        }
        return shown | {name: value for name, value in told.items() if value}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLanding:
    workspaces: WorkspaceService

    async def land(self, session: AgentSession, run: AgentRun) -> LandingReport:
        """After a run that went well: as the session says."""
        if session.land is Land.AUTO:
            return await self.commit(session, run)
        because = "a person decides first" if session.land is Land.AFTER_REVIEW else "this session never commits"
        return await self.keep(session, because)

    async def commit(self, session: AgentSession, run: AgentRun) -> LandingReport:
        """Whatever is in the folder goes through the gate. Sent twice, it lands once."""
        wish = Wish(message=_message(run), run=str(run.id))
        _, committed = await self.workspaces.commit(session.caller(), session.workspace, wish=wish)
        return _report(committed)

    async def keep(self, session: AgentSession, because: str) -> LandingReport:
        """Leave the work where it is, and say so."""
        _, look = await self.workspaces.status(session.caller(), session.workspace)
        if not look.changes:
            return LandingReport(state=LandingState.NOTHING, held_back=len(look.found.reported))
        paths = tuple({"path": str(change.path), "status": "uncommitted"} for change in look.changes[:_MOST_PATHS])
        return LandingReport(
            state=LandingState.WAITS,
            counts={"uncommitted": len(look.changes)},
            paths=paths,
            held_back=len(look.found.reported),
            because=because,
        )


def _message(run: AgentRun) -> str:
    """The first line of what the agent was asked to do."""
    first = next((line.strip() for line in run.prompt.splitlines() if line.strip()), "")
    text = "".join(character if character.isprintable() else " " for character in first)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


def _report(committed: Committed) -> LandingReport:
    answers = [one.answered.answer for one in committed.changes]
    if not answers:
        return LandingReport(state=LandingState.NOTHING, held_back=len(committed.reported))
    interesting = sorted(answers, key=lambda answer: (answer.status not in _TOLD, answer.path))
    paths = []
    for answer in interesting[:_MOST_PATHS]:
        shown = {"path": str(answer.result_path or answer.path), "status": str(answer.status)}
        if answer.review_id is not None:
            shown["review_id"] = str(answer.review_id)
        if answer.reason is not None:
            shown["reason"] = answer.reason
        paths.append(shown)
    return LandingReport(
        state=LandingState.LANDED,
        seq=committed.seq,
        counts=Counter(str(answer.status) for answer in answers),
        paths=tuple(paths),
        held_back=len(committed.reported),
    )
