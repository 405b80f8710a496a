"""Bodies of agents' todo lists."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from contextbase.agent_vocabulary import TodoChange, TodoStatus
from contextbase.wire.answer import AnswerView

__all__ = ["TodoEventPage", "TodoEventView", "TodoItemView", "TodoList"]


class TodoItemView(AnswerView):
    run_id: UUID
    todo_id: str
    content: str
    status: TodoStatus
    order: int
    created_at: datetime
    updated_at: datetime


class TodoList(BaseModel):
    todos: list[TodoItemView] = Field(description="In the agent's order.")


class TodoEventView(AnswerView):
    """What happened to one item."""

    run_id: UUID
    todo_id: str
    position: int = Field(description="Its place in the session.")
    change: TodoChange
    content: str
    status: TodoStatus
    order: int
    ts: datetime


class TodoEventPage(BaseModel):
    changes: list[TodoEventView] = Field(description="In the order they happened.")
    next_after: int | None = Field(description="Pass as `after` for the next page; null: there was nothing more.")
