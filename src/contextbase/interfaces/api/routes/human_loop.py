"""What agents ask people: a question, or leave to use a tool. Only a session's owner answers."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query

from contextbase.agent_vocabulary import QuestionStatus
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectFilter
from contextbase.interfaces.api.routes.runs import NamedRun
from contextbase.interfaces.api.session_views import question_view
from contextbase.sessions.answers import QuestionReply
from contextbase.wire.question import QuestionPage, QuestionReplyBody, QuestionView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["sessions"], responses=problem_answers(404, 409))

_ID: Final = r"^[A-Za-z0-9._:-]+$"

NamedQuestion = Annotated[str, Path(description="The question's id.", max_length=200, pattern=_ID)]


@router.get("/human-loop")
async def list_questions(
    *,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    project_id: ProjectFilter,
    state: Annotated[QuestionStatus | None, Query(description="Left out: all.")] = None,
    before: Annotated[str | None, Query(description="A question's id.", max_length=200, pattern=_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> QuestionPage:
    """What the agents of all your sessions ask, newest first."""
    found = await services.sessions.questions.inbox(
        caller,
        status=state,
        project_id=project_id,
        before=before,
        limit=limit + 1,
    )
    return QuestionPage(
        questions=[question_view(one) for one in found[:limit]],
        next_before=found[limit - 1].question.question_id if len(found) > limit else None,
    )


@router.get("/runs/{run}/human-loop")
async def list_questions_of_run(
    run: NamedRun, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> QuestionPage:
    """What the run's agent asked, in order, and what became of it."""
    found = await services.sessions.questions.of_run(caller, run)
    return QuestionPage(questions=[question_view(one) for one in found], next_before=None)


@router.post("/runs/{run}/human-loop/{question_id}/reply")
async def reply_to_question(
    run: NamedRun,
    question_id: NamedQuestion,
    body: QuestionReplyBody,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> QuestionView:
    """Answer what an agent of yours asks; a token of an agent is refused. The same answer again changes nothing, and
    another one is refused: 409. If the question has expired, the answer starts a new run, and `response` names it."""
    reply = QuestionReply(values=tuple(body.values), text=body.text, decision=body.decision, reason=body.reason)
    return question_view(await services.sessions.questions.reply(caller, run, question_id, reply))
