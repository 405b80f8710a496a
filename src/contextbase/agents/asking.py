"""What agents ask people: their questions, and leave to use a tool."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Self

from contextbase.agents.model import AgentQuestion, AgentTurn
from contextbase.agents.ports import EventSink
from contextbase.agents.shortening import shortened

__all__ = ["LaterAnswers", "Permissions", "answered"]

_ASKING_PROFILE: Final = "ask"
_DECISIONS: Final = (
    {"value": "allow_once", "label": "Allow once"},
    {"value": "allow_session", "label": "Allow for this session"},
    {"value": "deny", "label": "Deny"},
)
_TITLE_FROM: Final = ("command", "file_path", "filePath", "filepath", "path", "url", "query", "pattern")
_LONGEST_TITLE: Final = 300
_LONGEST_LINE: Final = 2000
_MOST_OPTIONS: Final = 50


class Permissions:
    """Of one turn. Only the profile `ask` asks a person, and not again for what a person has allowed."""

    def __init__(self, turn: AgentTurn, sink: EventSink) -> None:
        self._turn = turn
        self._sink = sink
        self._tools = set(turn.allowed_tools)
        self._once = list(turn.allowed_once)

    async def allowed(
        self, name: str, tool: str, given: Mapping[str, Any], *, diff: Callable[[], str], tool_id: str | None = None
    ) -> tuple[bool, str]:
        """Whether the agent may use the tool, and what to tell it if not. `name` tells this request from others; `diff`
        says what it would change."""
        if self._turn.profile != _ASKING_PROFILE or tool in self._tools:
            return True, ""
        fingerprint = hashlib.sha256(json.dumps([tool, given], sort_keys=True, default=str).encode()).hexdigest()
        if fingerprint in self._once:
            self._once.remove(fingerprint)
            return True, ""
        title = next((str(given[each]) for each in _TITLE_FROM if given.get(each)), "")
        context: dict[str, Any] = {"tool": tool, "input": given, "fingerprint": fingerprint}
        if change := await asyncio.to_thread(diff):
            context["diff"] = change
        if tool_id:
            context["tool_id"] = tool_id
        question = AgentQuestion(
            question_id=_question_id(self._turn, name),
            kind="permission",
            prompt=f"May the agent use {tool}{': ' if title else ''}{shortened(title, _LONGEST_TITLE)[0]}?",
            options=_DECISIONS,
            context=context,
        )
        answer = await self._sink.ask(question)
        if answer.get("decision") == "allow_session":
            self._tools.add(tool)
        is_allowed = answer.get("decision") in ("allow_once", "allow_session")
        reason = str(answer.get("reason") or "")
        return is_allowed, f"A person said no: {reason}" if reason else "A person said no."


class LaterAnswers:
    """Answers to an agent that people may take minutes for, while what it says meanwhile is still read. What is not
    answered at the end of the block is given up."""

    def __init__(self) -> None:
        self._answering: set[asyncio.Task[None]] = set()
        self.are_owed = False  # after the block: it waits for something that nobody tells it any more

    def begin(self, answer: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(answer)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.are_owed = bool(self._answering)
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)


async def answered(
    turn: AgentTurn, sink: EventSink, name: str, questions: Any
) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Each question of the agent to a person, one after the other, with what the person said."""
    answers: list[tuple[Mapping[str, Any], list[str]]] = []
    for number, one in enumerate(questions if isinstance(questions, list) else []):
        if not isinstance(one, dict):
            continue
        choices = [choice for choice in one.get("options") or [] if isinstance(choice, dict)]
        question = AgentQuestion(
            question_id=_question_id(turn, f"{name}:{number}"),
            kind="question",
            prompt=str(one.get("question")),
            options=tuple(map(_option, choices[:_MOST_OPTIONS])),
            multiple=bool(one.get("multiSelect") or one.get("multiple")),
            context={"header": str(one["header"])} if one.get("header") else {},
        )
        answer = await sink.ask(question)
        values = answer.get("values")
        said = [str(value) for value in values] if isinstance(values, list) else []
        answers.append((one, said + ([str(answer["text"])] if answer.get("text") else [])))
    return answers


def _option(choice: Mapping[str, Any]) -> dict[str, str]:
    """Agent programs take a choice by its label."""
    label, description = (shortened(str(choice.get(name) or ""), _LONGEST_LINE)[0] for name in ("label", "description"))
    return {"value": label, "label": label} | ({"description": description} if description else {})


def _question_id(turn: AgentTurn, name: str) -> str:
    """Begins with the run's id: the server takes no other."""
    return f"{turn.key}:{re.sub(r'[^A-Za-z0-9._:-]', '-', name)}"[:200]
