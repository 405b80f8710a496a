"""Agents' todo lists: as they are, and what happened to them."""

from typing import Annotated

from fastapi import APIRouter, Query

from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.routes.runs import NamedRun
from contextbase.interfaces.api.routes.sessions import NamedSession
from contextbase.wire.todo import TodoEventPage, TodoEventView, TodoItemView, TodoList

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["sessions"], responses=problem_answers(404, 409))


@router.get("/runs/{run}/todos")
async def list_todos_of_run(run: NamedRun, caller: AuthenticatedCaller, services: AuthenticatedServices) -> TodoList:
    """The run's todo list: as it is now, or as it was at the end."""
    found = await services.sessions.todos.of_run(caller, run)
    return TodoList(todos=[TodoItemView.model_validate(one) for one in found])


@router.get("/runs/{run}/todos/events")
async def list_todo_events(
    *,
    run: NamedRun,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    after: Annotated[int, Query(description="A position.", ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(description="Of events; each may change several items.", ge=1, le=500)] = 100,
) -> TodoEventPage:
    """What happened to the items of the run's todo list, in order. Items that are gone are in it, too."""
    found = await services.sessions.todos.history(caller, run, after=after, limit=limit)
    return TodoEventPage(
        changes=[TodoEventView.model_validate(one) for one in found],
        next_after=found[-1].position if len({one.position for one in found}) == limit else None,
    )


@router.get("/sessions/{session}/todos")
async def list_todos(session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices) -> TodoList:
    """The session's todo list: that of the last run that had one."""
    found = await services.sessions.todos.of_session(caller, session)
    return TodoList(todos=[TodoItemView.model_validate(one) for one in found])
