"""A small agent of our own: no program to install, the Messages API and four tools. Its sessions are files of JSON."""

import asyncio
import json
import os
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from contextbase.agents.asking import Permissions, answered
from contextbase.agents.edit_diff import edit_diff
from contextbase.agents.instructions import place_instructions
from contextbase.agents.messages_api import ModelRefused, message_events
from contextbase.agents.model import AgentPaths, AgentPlace, AgentTurn, Capability, TurnEnd, TurnFailure, TurnOutcome
from contextbase.agents.ports import EventSink
from contextbase.agents.scripted_tools import ASK, TODO, TOOLS, TOOLS_OF_THE_TURN, ToolProblem, used_tool
from contextbase.agents.shortening import shortened, shortened_values
from contextbase.agents.todo_lists import TodoLists, listed_todos
from contextbase.agents.turns import resume_failed

__all__ = ["ScriptedAdapter"]

_VERSION: Final = "1"
_MOST_STEPS: Final = 200
_MOST_TOKENS: Final = 8192
_TRIES: Final = 6
_FIRST_PAUSE: Final = 0.5
_RETRIED: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_TITLES: Final = {"Bash": "command", "Read": "file_path", "Write": "file_path", "Edit": "file_path"}
_NAMES: Final = {ASK: "other", TODO: "todo"}
_ASKED_FOR: Final = frozenset({"Bash", "Write", "Edit"})  # where a person permits tools


class ScriptedAdapter:
    name = "scripted"
    other_names = ()
    default_model = None
    capabilities = frozenset(Capability) - {Capability.PLAN, Capability.MCP}
    package = None
    options = ()
    paths = AgentPaths(folder="scripted", state=("*.json",))

    def version(self, place: AgentPlace) -> str | None:
        del place
        return _VERSION

    async def run(self, turn: AgentTurn, place: AgentPlace, sink: EventSink, canceled: asyncio.Event) -> TurnEnd:
        session = _SessionFile(place.agent_data / self.paths.folder, turn.resume)
        if turn.resume and not session.messages:
            return resume_failed(self.name, turn, "its file is missing")
        status = {"state": "running", "provider": self.name, "cli_version": _VERSION}
        await sink.emit("run.status", {**status, "sdk_session_id": session.id})
        working = asyncio.create_task(_Turn(turn, place, sink, session).finished())
        stopping = asyncio.create_task(canceled.wait())
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            failure = working.result() if working.done() else None
        finally:
            for task in (working, stopping):
                task.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)
        if canceled.is_set():
            outcome = TurnOutcome.CANCELED
            await asyncio.to_thread(session.interrupt)
        else:
            outcome = TurnOutcome.COMPLETED if failure is None else TurnOutcome.FAILED
        return TurnEnd(outcome=outcome, sdk_session_id=session.id, failure=failure)


class _SessionFile:
    """All messages, replaced as a whole after each step: what is there is always a conversation that can go on."""

    def __init__(self, folder: Path, resume: str | None) -> None:
        self.id = resume if resume and re.fullmatch(r"[0-9a-f-]{1,64}", resume) else str(uuid4())
        self._folder = folder
        self._place = folder / f"{self.id}.json"
        self.messages: list[dict[str, Any]] = []
        try:
            self.messages = json.loads(self._place.read_bytes())
        except (OSError, ValueError):
            self.messages = []

    def save(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._place.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(self.messages, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._place)

    def interrupt(self) -> None:
        """The turn ends here: its open calls have no result, and the conversation can go on."""
        last = self.messages[-1] if self.messages else {}
        if last.get("role") == "assistant":
            calls = [block["id"] for block in last["content"] if block["type"] == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": one, "content": "Interrupted.", "is_error": True}
                for one in calls
            ]
            if results:
                self.messages.append({"role": "user", "content": results})
        self.save()


class _Turn:
    def __init__(self, turn: AgentTurn, place: AgentPlace, sink: EventSink, session: _SessionFile) -> None:
        self._turn = turn
        self._place = replace(place, environment={**place.environment, **turn.environment})
        self._sink = sink
        self._session = session
        self._permissions = Permissions(turn, sink)
        self._todos = TodoLists()
        self._number = 0
        instructions = place_instructions(place.workspace)
        here = f"You work in a folder. Working directory: {place.workspace}"
        self._system = "\n\n".join(filter(None, (here, turn.system_prompt, instructions)))

    async def finished(self) -> TurnFailure | None:
        messages = self._session.messages
        messages.append({"role": "user", "content": self._turn.message})
        for _ in range(_MOST_STEPS):
            try:
                content, reason = await self._answer()
            except ModelRefused as error:
                code = "rate_limited" if error.status == 429 else "model_error"
                return TurnFailure(code=code, message=error.message[:2000], is_retryable=error.status in _RETRIED)
            except OSError as error:
                return TurnFailure(code="model_unreachable", message=str(error), is_retryable=True)
            messages.append({"role": "assistant", "content": content or [{"type": "text", "text": "…"}]})
            calls = [block for block in content if block["type"] == "tool_use"]
            results = [await self._called(block) for block in calls] if reason == "tool_use" else []
            steered = await self._steered()
            if results or steered:
                messages.append({"role": "user", "content": [*results, *steered]})
            await asyncio.to_thread(self._session.save)
            if not (results or steered):
                return None
        return TurnFailure(code="max_turns", message=f"The agent took more than {_MOST_STEPS} steps.")

    async def _steered(self) -> list[dict[str, Any]]:
        said = []
        while not self._sink.steering.empty():
            message = self._sink.steering.get_nowait()
            said.append({"type": "text", "text": message.text})
            await self._sink.emit("message.steered", {"steer_id": message.steer_id})
        return said

    async def _answer(self) -> tuple[list[dict[str, Any]], str | None]:
        """Try again while nothing but the connection is wrong; what was said until then is said again."""
        self._number += 1
        message_id = f"{self._turn.key}:{self._number}"
        for number in range(1, _TRIES + 1):
            try:
                return await self._streamed(message_id)
            except (ModelRefused, OSError) as error:
                refused = error if isinstance(error, ModelRefused) else None
                if number == _TRIES or (refused is not None and refused.status not in _RETRIED):
                    raise
                await self._sink.emit("message.restarted", {"message_id": message_id})
                pause = _FIRST_PAUSE * 2 ** (number - 1)
                if refused is not None and refused.status == 429:
                    pause = min(refused.retry_after or pause, 60)
                    await self._sink.emit("rate_limited", {"retry_after": pause})
                await asyncio.sleep(pause)
        raise AssertionError

    async def _streamed(self, message_id: str) -> tuple[list[dict[str, Any]], str | None]:
        body = {
            "model": self._turn.model,
            "max_tokens": _MOST_TOKENS,
            "system": self._system,
            "messages": self._session.messages,
            "tools": [*TOOLS, *TOOLS_OF_THE_TURN],
        }
        blocks: dict[int, dict[str, Any]] = {}
        arguments: dict[int, str] = {}
        usage: dict[str, Any] = {}
        reason: str | None = None
        is_whole = False
        async with aclosing(message_events(self._place.model_url, body)) as events:
            async for event in events:
                kind, index = event.get("type"), int(event.get("index") or 0)
                delta = event.get("delta") or {}
                if kind == "message_start":
                    usage |= (event.get("message") or {}).get("usage") or {}
                elif kind == "content_block_start":
                    blocks[index] = dict(event.get("content_block") or {})
                elif kind == "content_block_delta" and delta.get("type") == "text_delta":
                    blocks[index]["text"] = blocks[index].get("text", "") + delta["text"]
                    data = {"message_id": message_id, "part": index, "text": delta["text"]}
                    await self._sink.emit("message.delta", data)
                elif kind == "content_block_delta" and delta.get("type") == "input_json_delta":
                    arguments[index] = arguments.get(index, "") + delta["partial_json"]
                elif kind == "message_delta":
                    reason = delta.get("stop_reason") or reason
                    usage |= event.get("usage") or {}
                elif kind == "error":
                    raise ConnectionResetError(str((event.get("error") or {}).get("message", "The model failed.")))
                is_whole = is_whole or kind == "message_stop"
        if not is_whole:
            raise ConnectionResetError("The model's answer was cut off.")
        await self._told(message_id, blocks, usage)
        return [_whole(block, arguments.get(index)) for index, block in sorted(blocks.items())], reason

    async def _told(self, message_id: str, blocks: Mapping[int, Mapping[str, Any]], usage: Mapping[str, Any]) -> None:
        for index, block in sorted(blocks.items()):
            if block.get("type") == "text":
                data = {"message_id": message_id, "part": index, "text": block.get("text", "")}
                await self._sink.emit("message.done", data)
        await self._sink.emit("message.stop", {"message_id": message_id})
        counts = {
            "input_tokens": usage.get("input_tokens", 0),
            "output_tokens": usage.get("output_tokens", 0),
            "cache_read_tokens": usage.get("cache_read_input_tokens", 0),
            "cache_write_tokens": usage.get("cache_creation_input_tokens", 0),
        }
        await self._sink.emit("usage", {"model": self._turn.model, **counts})

    async def _called(self, block: Mapping[str, Any]) -> dict[str, Any]:
        name, given, tool_id = str(block["name"]), block["input"], str(block["id"])
        known = name.lower() if name in _TITLES else _NAMES.get(name, "other")
        title = shortened(str(given.get(_TITLES.get(name, ""), name)), 200)[0]
        start = {"tool_id": tool_id, "name": known, "title": title, "input": shortened_values(given), "raw": name}
        await self._sink.emit("tool.start", start)
        output, status = "Interrupted.", "error"
        try:
            output, status = await self._used(name, given, tool_id), "ok"
        except ToolProblem as problem:
            output = str(problem)
        finally:
            text, is_cut = shortened(output)
            end = {"tool_id": tool_id, "status": status, "output": text, "truncated": is_cut}
            await self._sink.emit("tool.end", end)
        return {"type": "tool_result", "tool_use_id": tool_id, "content": output, "is_error": status == "error"}

    async def _used(self, name: str, given: Mapping[str, Any], tool_id: str) -> str:
        if name == ASK:
            answers = await answered(self._turn, self._sink, tool_id, given.get("questions"))
            return "\n".join(f"{one.get('question')}: {', '.join(said)}" for one, said in answers)
        if name == TODO:
            await self._sink.emit(*self._todos.snapshot(listed_todos(given.get("todos"))))
            return "The person sees the list."
        if name in _ASKED_FOR:
            is_allowed, refusal = await self._permissions.allowed(
                tool_id, name, given, diff=lambda: edit_diff(self._place.workspace, given), tool_id=tool_id
            )
            if not is_allowed:
                raise ToolProblem(refusal)
        return await used_tool(name, given, self._place)


def _whole(block: Mapping[str, Any], arguments: str | None) -> dict[str, Any]:
    if block.get("type") != "tool_use":
        return {"type": "text", "text": block.get("text", "")}
    try:
        given = json.loads(arguments) if arguments else block.get("input")
    except ValueError:
        given = {}
    return {
        "type": "tool_use",
        "id": str(block.get("id")),
        "name": str(block.get("name")),
        "input": given if isinstance(given, dict) else {},
    }
