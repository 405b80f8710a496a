"""Events to agents' todo lists and their history. Pure: an event changes the list of its own run alone, but for a
rewind, which takes lists back to what they were."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from contextbase.agent_vocabulary import TodoChange, TodoStatus
from contextbase.conversation.model import SESSION_REWOUND, SessionEvent
from contextbase.conversation.rewind_cut import RewindCut

__all__ = ["TODO_EVENTS", "TODO_SNAPSHOT", "TodoItem", "TodoItemEvent", "TodoRows", "list_after"]

TODO_SNAPSHOT: Final = "todo.snapshot"
_UPDATE: Final = "todo.update"
TODO_EVENTS: Final = frozenset({TODO_SNAPSHOT, _UPDATE, SESSION_REWOUND})


@dataclass(frozen=True, kw_only=True, slots=True)
class TodoItem:
    run_id: UUID
    todo_id: str
    content: str
    status: TodoStatus
    order: int
    first_seen: int  # the event that brought it
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class TodoItemEvent:
    """What an event of the session did to one item."""

    run_id: UUID
    todo_id: str
    position: int  # of the event
    change: TodoChange
    content: str
    status: TodoStatus
    order: int
    ts: datetime


def list_after(history: Iterable[TodoItemEvent], keep: int | None) -> list[TodoItemEvent]:
    """A run's list as it was after the event `keep` (None: as it is): the last change of each item, in its order.
    `history`: of that run, from its start."""
    last: dict[str, TodoItemEvent] = {}
    for one in history:
        if keep is None or one.position <= keep:
            last[one.todo_id] = one
    return sorted((one for one in last.values() if one.change is not TodoChange.REMOVED), key=lambda one: one.order)


@dataclass(kw_only=True, slots=True)
class TodoRows:
    """The items of runs, and what events have changed of them. A rewind into the middle of a run needs the run's whole
    history; what it hides goes before the rest is put."""

    items: dict[tuple[UUID, str], TodoItem] = field(default_factory=dict)
    changed: set[tuple[UUID, str]] = field(default_factory=set)  # also those that are gone now
    history: list[TodoItemEvent] = field(default_factory=list)
    cuts: list[RewindCut] = field(default_factory=list)

    def apply(self, event: SessionEvent) -> None:
        """A snapshot is the whole list: what it lacks is gone. An update is about one item and leaves the others."""
        if event.kind == TODO_SNAPSHOT:
            listed: Any = event.data["todos"]
            named = {str(one["todo_id"]): one | {"order": one.get("order", at)} for at, one in enumerate(listed, 1)}
            for key in sorted(key for key in self.items if key[0] == event.run_id and key[1] not in named):
                self._tell(event, self.items.pop(key), TodoChange.REMOVED)
            for todo_id, one in named.items():
                self._put(event, todo_id, one)
        elif event.kind == _UPDATE:
            self._put(event, str(event.data["todo_id"]), event.data)
        elif event.kind == SESSION_REWOUND:
            self._rewind(RewindCut.of(event))

    def apply_all(self, events: Iterable[SessionEvent]) -> None:
        for event in events:
            self.apply(event)

    def _put(self, event: SessionEvent, todo_id: str, given: Mapping[str, Any]) -> None:
        before = self.items.get((event.run_id, todo_id))
        if before is None:
            item = TodoItem(
                run_id=event.run_id,
                todo_id=todo_id,
                content=given.get("content", ""),
                status=TodoStatus(given["status"]),
                order=given.get("order", self._last_order(event.run_id) + 1),
                first_seen=event.number,
                created_at=event.ts,
                updated_at=event.ts,
            )
            self._tell(event, item, TodoChange.ADDED)
        else:
            item = replace(
                before,
                content=given.get("content", before.content),
                status=TodoStatus(given["status"]),
                order=given.get("order", before.order),
            )
            if item == before:
                return
            item = replace(item, updated_at=event.ts)
            self._tell(event, item, TodoChange.CHANGED)
        self.items[event.run_id, todo_id] = item

    def _rewind(self, cut: RewindCut) -> None:
        self.cuts.append(cut)
        self.history = [one for one in self.history if not cut.hides(one)]
        again = None if cut.keep is None or cut.run_id in cut.runs else cut.run_id
        for key in [key for key in self.items if key[0] in cut.runs or key[0] == again]:
            del self.items[key]
            self.changed.add(key)
        for one in self.history:
            if one.run_id == again:
                self._redo(one)

    def _redo(self, one: TodoItemEvent) -> None:
        key = (one.run_id, one.todo_id)
        self.changed.add(key)
        if one.change is TodoChange.REMOVED:
            del self.items[key]
            return
        before = self.items.get(key)
        self.items[key] = TodoItem(
            run_id=one.run_id,
            todo_id=one.todo_id,
            content=one.content,
            status=one.status,
            order=one.order,
            first_seen=one.position if before is None else before.first_seen,
            created_at=one.ts if before is None else before.created_at,
            updated_at=one.ts,
        )

    def _last_order(self, run_id: UUID) -> int:
        return max((item.order for item in self.items.values() if item.run_id == run_id), default=0)

    def _tell(self, event: SessionEvent, item: TodoItem, change: TodoChange) -> None:
        self.changed.add((item.run_id, item.todo_id))
        self.history.append(
            TodoItemEvent(
                run_id=item.run_id,
                todo_id=item.todo_id,
                position=event.number,
                change=change,
                content=item.content,
                status=item.status,
                order=item.order,
                ts=event.ts,
            )
        )
