"""Questions of a run, for the machine that works on it: answers are brought to the agent, and a turn whose person takes
long is ended, so that it waits without a process. The answer then begins the next one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from contextbase.agent_vocabulary import PermissionDecision, QuestionKind, QuestionStatus
from contextbase.conversation.question_repository import QuestionRepository
from contextbase.conversation.questions import DELIVERED, HumanQuestion
from contextbase.db.database import Database
from contextbase.errors import ContextbaseError, LeaseLost
from contextbase.sessions.agent_runs import QUESTION_EXPIRED, AgentRuns
from contextbase.sessions.answers import quoted_answers
from contextbase.sessions.executor_link import ExecutorLink
from contextbase.sessions.model import AgentRun
from contextbase.streams.model import Scope
from contextbase.streams.notifier import Notifier

__all__ = ["QuestionWatch", "RunQuestions", "TurnAnswers"]

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 2.0  # without a hint, while a question is open
PARKED: Final = "parked"
"""Why the executor is to end a turn: a person takes long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnAnswers:
    """What people said since the agent's last turn, and what they allow."""

    quoted: str  # empty: nobody said anything
    new: Sequence[str]  # ids of questions whose answers the agent lacks
    allowed_tools: Sequence[str]  # for the session
    allowed_once: Sequence[str]  # fingerprints of uses


@dataclass(frozen=True, kw_only=True, slots=True)
class RunQuestions:
    database: Database
    runs: AgentRuns
    notifier: Notifier
    patience: timedelta = timedelta(minutes=10)  # for which the agent's process waits
    repository: QuestionRepository = field(default_factory=QuestionRepository)

    async def of(self, run: AgentRun) -> list[HumanQuestion]:
        async with self.database.connection() as connection:
            return await self.repository.of_run(connection, run.id)

    async def waits(self, run: AgentRun) -> bool:
        """Whether the run waits for a person, or for the answer to reach its agent."""
        return any(one.status is QuestionStatus.PENDING or _is_undelivered(one) for one in await self.of(run))

    async def for_turn(self, run: AgentRun) -> TurnAnswers:
        """For an attempt that begins."""
        async with self.database.connection() as connection:
            questions = await self.repository.of_run(connection, run.id)
            tools = await self.repository.session_permissions(connection, run.session_id)
        new = [one for one in questions if _is_undelivered(one)]
        # A turn that ended early may have lost answers that its program took: they are told again.
        told = [one for one in questions if one in new or one.kind is QuestionKind.QUESTION]
        return TurnAnswers(
            quoted=quoted_answers((one, one.response.answer) for one in told if one.response is not None),
            new=[one.question_id for one in new],
            allowed_tools=tools,
            allowed_once=[str(one.context.get("fingerprint")) for one in new if _is_allowed_once(one)],
        )

    async def delivered(self, run: AgentRun, question_id: str) -> None:
        """The agent has the answer."""
        await self.runs.tell(run.session_id, run.id, run.attempt, DELIVERED, {"question_id": question_id})

    def watch(
        self, run: AgentRun, told: int, link: ExecutorLink, settle: Callable[[bool], Awaitable[None]]
    ) -> "QuestionWatch":
        """`told`: the attempt by which the executor knows it. `settle` is told whether the run waits for a person."""
        return QuestionWatch(self, run, f"{run.id}:{told}:", link, settle)


class QuestionWatch:
    """Of one attempt, beside the reading of its events."""

    def __init__(
        self,
        questions: RunQuestions,
        run: AgentRun,
        prefix: str,
        link: ExecutorLink,
        settle: Callable[[bool], Awaitable[None]],
    ) -> None:
        self._questions = questions
        self._run = run
        self._prefix = prefix
        self._link = link
        self._settle = settle
        self._is_needed = asyncio.Event()
        self._is_needed.set()  # there may be questions from before this process
        self._wake = asyncio.Event()
        self._settled: set[str] = set()  # whose answer reached the executor, or will not
        self._seen: dict[str, float] = {}  # when a pending one was first seen, by the loop's clock
        self._is_ending = False

    def asked(self) -> None:
        """The agent has asked something."""
        self._is_needed.set()
        self._wake.set()

    async def watch(self) -> None:
        """Until it is cancelled."""
        with self._questions.notifier.subscribed(Scope.session(self._run.session_id), self._wake.set):
            while True:
                await self._is_needed.wait()
                self._wake.clear()
                try:
                    seconds = await self._looked()
                except LeaseLost:
                    return
                except ContextbaseError as error:
                    extra = {"run_id": str(self._run.id), "error": error.message}
                    _log.warning("an answer could not be brought to its agent; trying again", extra=extra)
                    seconds = _LOOK_SECONDS
                if seconds is None:
                    continue
                try:
                    async with asyncio.timeout(seconds):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def _looked(self) -> float | None:
        """Seconds until it should look again; None: when the agent asks something."""
        self._is_needed.clear()
        mine = [one for one in await self._questions.of(self._run) if one.question_id.startswith(self._prefix)]
        pending = [one for one in mine if one.status is QuestionStatus.PENDING]
        if pending:
            self._is_needed.set()
            await self._settle(True)
        for question in mine:
            await self._bring(question)
        if not pending:
            await self._settle(False)
            return None
        return await self._waited(pending)

    async def _bring(self, question: HumanQuestion) -> None:
        name = question.question_id
        if name in self._settled or question.status is QuestionStatus.PENDING:
            return
        if question.status is QuestionStatus.EXPIRED:
            await self._end_turn(QUESTION_EXPIRED)
        elif question.response is not None and question.delivered_at is None:
            body = {"question_id": name, "answer": dict(question.response.answer)}
            answer = await self._link.call("POST", "/human-loop/reply", body)
            if answer.status < 400:  # else nobody waits for it any more: it begins the next turn
                await self._questions.delivered(self._run, name)
        self._settled.add(name)

    async def _waited(self, pending: Sequence[HumanQuestion]) -> float:
        now = asyncio.get_running_loop().time()
        since = min(self._seen.setdefault(one.question_id, now) for one in pending)
        left = since + self._questions.patience.total_seconds() - now
        if left <= 0:
            await self._end_turn(PARKED)
            return _LOOK_SECONDS
        return min(left, _LOOK_SECONDS)

    async def _end_turn(self, reason: str) -> None:
        if not self._is_ending:
            await self._link.call("POST", "/cancel", {"run_id": str(self._run.id), "reason": reason})
            self._is_ending = True


def _is_undelivered(question: HumanQuestion) -> bool:
    return question.status is QuestionStatus.ANSWERED and question.delivered_at is None


def _is_allowed_once(question: HumanQuestion) -> bool:
    return question.response is not None and question.response.answer.get("decision") == PermissionDecision.ALLOW_ONCE
