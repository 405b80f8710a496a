"""Questions that agents ask people: listed, answered once, and closed when nobody answers in time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contextbase.agent_vocabulary import QuestionStatus
from contextbase.audit.repository import AuditRepository
from contextbase.conversation.log import LoggedEvent
from contextbase.conversation.question_repository import QuestionRepository, question_of_row
from contextbase.conversation.questions import ANSWERED_LATE, HumanQuestion
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.identity.model import Action, Caller, GrantSource, PrincipalKind
from contextbase.ids import Clock, ProjectId
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.agent_runs import QUESTION_EXPIRED, AgentRuns, RunStep
from contextbase.sessions.answers import QuestionReply, checked_answer, default_answer, quoted_answers
from contextbase.sessions.model import AgentRun, AgentSession, RunFacts, RunId, SessionId
from contextbase.sessions.queue import RunQueue
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.service import SessionService
from contextbase.sessions.states import ENDED, RunState

__all__ = ["AskedQuestion", "QuestionService"]

_SQL: Final = load_queries("contextbase.sessions")
_BATCH: Final = 100
_NOBODY: Final = "system:default"  # answered, because no person did


AnswersItself = Callable[[AgentSession], Awaitable[bool]]
"""Whether a question of the session that nobody answers in time gets the default answer; else its run fails."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedQuestion:
    session_id: SessionId
    question: HumanQuestion


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionService:
    database: Database
    repository: SessionRepository
    access: SessionAccess
    runs: AgentRuns
    queue: RunQueue
    service: SessionService
    answers_itself: AnswersItself
    audit: AuditRepository
    clock: Clock
    questions: QuestionRepository = field(default_factory=QuestionRepository)

    async def of_run(self, caller: Caller, run_id: RunId) -> Sequence[AskedQuestion]:
        """All of a run's, in the order they were asked, with what became of them."""
        async with self.database.transaction() as connection:
            run = await self.access.opened_run(connection, caller, run_id)
            found = await self.questions.of_run(connection, run_id)
        return [AskedQuestion(session_id=run.session_id, question=one) for one in found]

    async def inbox(
        self,
        caller: Caller,
        *,
        status: QuestionStatus | None = None,
        project_id: ProjectId | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> Sequence[AskedQuestion]:
        """Of all sessions of the caller's, the newest first."""
        project_id = project_id or caller.grant.project_id
        caller.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            rows = await connection.fetch(
                _SQL.questions_of_owner, caller.principal.id, status, project_id, before, limit
            )
        return [AskedQuestion(session_id=SessionId(row["session_id"]), question=question_of_row(row)) for row in rows]

    async def reply(self, caller: Caller, run_id: RunId, question_id: str, reply: QuestionReply) -> AskedQuestion:
        """Answer a question, for its session's owner and whom the owner lets drive it: never for an agent. The same
        answer again changes nothing, another one is a `Conflict`. The answer to a question that has expired starts a
        new run with it."""
        _check_person(caller)
        session_id = (await self.runs.get(run_id)).session_id
        async with self.runs.step(session_id) as step:
            session, run = await self.access.driven_run(step.connection, caller, run_id)
            question = await self._found(step.connection, run_id, question_id)
            answer = checked_answer(question, reply)
            match question.status:
                case QuestionStatus.PENDING:
                    await self._answer(step, str(caller.principal), run, question, answer)
                    await self._note(step, caller, session, question)
                case QuestionStatus.CANCELED:
                    raise Conflict("The run that asked this has ended; send the session a message instead.")
                case QuestionStatus.ANSWERED:
                    _check_same(question, answer)
        if question.status is QuestionStatus.EXPIRED:
            await self._answer_late(caller, run, question, answer)
        self.runs.log.hint_machines()
        async with self.database.connection() as connection:
            return AskedQuestion(session_id=session_id, question=await self._found(connection, run_id, question_id))

    async def expire(self) -> None:
        """For the leader: close the questions that nobody answered in time. Runs that wait without a machine fail;
        a machine ends the others. Where an app says so, they get a default answer instead."""
        async with self.database.connection() as connection:
            rows = await connection.fetch(_SQL.overdue_questions, self.clock.now(), _BATCH)
        for row in rows:
            await self._expire(SessionId(row["session_id"]), RunId(row["run_id"]), row["question_id"])

    async def _expire(self, session_id: SessionId, run_id: RunId, question_id: str) -> None:
        answers_itself = await self._answers_itself(session_id)
        async with self.runs.step(session_id) as step:
            machine = await self.queue.claimant(step.connection, run_id)
            run = await self.repository.run(step.connection, run_id, lock=True)
            question = await self._found(step.connection, run_id, question_id)
            if question.status is not QuestionStatus.PENDING or run.state in ENDED:
                return
            if answers_itself:
                await self._answer(step, _NOBODY, run, question, default_answer(question))
            elif machine is None:
                facts = RunFacts(reason=QUESTION_EXPIRED, message="Nobody answered the agent's question in time.")
                await self.runs.apply(step, run, RunState.FAILED, facts)
            else:
                step.events.append(self.runs.resolved_event(run, question_id, "expired"))

    async def _answers_itself(self, session_id: SessionId) -> bool:
        async with self.database.connection() as connection:
            session = await self.repository.find(connection, session_id)
        try:
            return session is not None and await self.answers_itself(session)
        except Conflict:  # its app is gone or disabled
            return False

    async def _answer(
        self, step: RunStep, by: str, run: AgentRun, question: HumanQuestion, answer: Mapping[str, Any]
    ) -> None:
        step.events.append(self.runs.resolved_event(run, question.question_id, "answered", answer=answer, by=by))
        if set(await self.questions.pending(step.connection, run.id)) <= {question.question_id}:
            await self.queue.unpark_in(step, run.id)
        await self.repository.touch_worker(step.connection, step.session_id, self.clock.now())

    async def _note(self, step: RunStep, caller: Caller, session: AgentSession, question: HumanQuestion) -> None:
        await self.audit.note(
            step.connection,
            session.project_id,
            "session.answer",
            f"Answered a {question.kind} of a session's agent.",
            at=self.clock.now(),
            by=caller.actor,
            session_id=str(session.id),
            question_id=question.question_id,
        )

    async def _answer_late(
        self, caller: Caller, run: AgentRun, question: HumanQuestion, answer: Mapping[str, Any]
    ) -> None:
        """Done twice, it starts one run: the question's id is what tells it from other messages."""
        if question.response is not None:
            _check_same(question, answer)
            return
        said = {"question_id": question.question_id, "answer": answer, "by": str(caller.principal)}
        prompt, key = quoted_answers([(question, answer)]), f"late:{question.question_id}"
        started = await self.service.send(caller, run.session_id, prompt, idempotency_key=key)
        async with self.runs.step(run.session_id) as step:
            step.events.append(
                LoggedEvent(
                    kind=ANSWERED_LATE,
                    run_id=run.id,
                    attempt=run.attempt,
                    ts=self.clock.now(),
                    data={**said, "late_run_id": str(started.id)},
                    principal_id=caller.principal.id,
                )
            )

    async def _found(self, connection: Connection, run_id: RunId, question_id: str) -> HumanQuestion:
        question = await self.questions.find(connection, question_id)
        if question is None or question.run_id != run_id:
            raise NotFound(f"The run {run_id} did not ask a question {question_id[:200]}.")
        return question


def _check_person(caller: Caller) -> None:
    """An agent that could answer would permit itself whatever it asks for."""
    if caller.principal.kind is not PrincipalKind.USER or caller.grant.source is GrantSource.RUN:
        raise Forbidden("Only a person answers what an agent asks; this caller is none.")


def _check_same(question: HumanQuestion, answer: Mapping[str, Any]) -> None:
    if question.response is None or dict(question.response.answer) != dict(answer):
        raise Conflict("The question was answered before, in another way. The first answer counts.")
