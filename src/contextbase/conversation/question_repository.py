"""Questions of agents and their answers in PostgreSQL. Every method works in the caller's transaction."""

import json
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.agent_vocabulary import QuestionKind, QuestionStatus
from contextbase.conversation.model import SessionEvent
from contextbase.conversation.questions import (
    QUESTION_EVENTS,
    HumanQuestion,
    HumanResponse,
    QuestionOption,
    QuestionRows,
)
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape

__all__ = ["QuestionRepository", "question_of_row"]

_SQL: Final = load_queries("contextbase.conversation")
_MOST: Final = 1000


class QuestionRepository:
    """Also the `EventRows` of questions."""

    kinds = QUESTION_EVENTS

    async def update(self, connection: Connection, session_id: UUID, events: Sequence[SessionEvent]) -> None:
        names = list({str(event.data["question_id"]) for event in events if "question_id" in event.data})
        found = map(question_of_row, await connection.fetch(_SQL.questions_by_id, names))
        rows = QuestionRows(questions={one.question_id: one for one in found})
        rows.apply_all(events)
        for cut in rows.cuts:
            await connection.execute(_SQL.hide_questions, session_id, list(cut.runs), cut.run_id, cut.keep)
        changed = [rows.questions[name] for name in sorted(rows.changed)]
        if changed:
            await self._put(connection, session_id, changed)

    async def find(self, connection: Connection, question_id: str) -> HumanQuestion | None:
        row = await connection.fetchrow(_SQL.questions_by_id, [question_id])
        return None if row is None else question_of_row(row)

    async def of_run(self, connection: Connection, run_id: UUID) -> list[HumanQuestion]:
        """In the order they were asked."""
        return list(map(question_of_row, await connection.fetch(_SQL.questions_of_run, run_id, _MOST)))

    async def pending(self, connection: Connection, run_id: UUID) -> list[str]:
        """The ids of a run's questions that nobody has answered."""
        return [row["question_id"] for row in await connection.fetch(_SQL.pending_questions_of_run, run_id)]

    async def session_permissions(self, connection: Connection, session_id: UUID) -> list[str]:
        """Tools that a person has allowed for the whole session."""
        return sorted(row["tool"] for row in await connection.fetch(_SQL.session_permissions, session_id))

    async def _put(self, connection: Connection, session_id: UUID, changed: Sequence[HumanQuestion]) -> None:
        await connection.execute(
            _SQL.put_questions,
            session_id,
            [one.question_id for one in changed],
            [one.run_id for one in changed],
            [one.attempt for one in changed],
            [one.position for one in changed],
            [one.kind for one in changed],
            [one.prompt for one in changed],
            [json.dumps([_option(option) for option in one.options]) for one in changed],
            [one.multiple for one in changed],
            [json.dumps(one.context) for one in changed],
            [one.status for one in changed],
            [one.deadline for one in changed],
            [one.created_at for one in changed],
            [one.resolved_at for one in changed],
            [one.delivered_at for one in changed],
        )
        if responses := [one.response for one in changed if one.response is not None]:
            await connection.execute(
                _SQL.put_responses,
                session_id,
                [one.question_id for one in responses],
                [one.run_id for one in responses],
                [json.dumps(one.answer) for one in responses],
                [one.responder for one in responses],
                [one.late_run_id for one in responses],
                [one.created_at for one in responses],
            )


def _option(option: QuestionOption) -> dict[str, str]:
    return {"value": option.value, "label": option.label, "description": option.description}


def _options_from_json(stored: str) -> tuple[QuestionOption, ...]:
    return tuple(QuestionOption(**option) for option in json.loads(stored))


_RESPONSE: Final = RowShape(HumanResponse, answer=json.loads)
_QUESTION: Final = RowShape(
    HumanQuestion, kind=QuestionKind, options=_options_from_json, context=json.loads, status=QuestionStatus
)


def question_of_row(row: asyncpg.Record) -> HumanQuestion:
    response = None if row["answer"] is None else _RESPONSE(row, created_at=row["answered_at"])
    return _QUESTION(row, response=response)
