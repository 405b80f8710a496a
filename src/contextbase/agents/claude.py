"""Claude Code, driven by lines of JSON on its standard input and output."""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from contextbase.agents.claude_events import ClaudeTranslator
from contextbase.agents.instructions import place_instructions
from contextbase.agents.model import (
    AgentPaths,
    AgentPlace,
    AgentQuestion,
    AgentTurn,
    Capability,
    TurnEnd,
    TurnFailure,
    TurnOutcome,
)
from contextbase.agents.ports import EventSink
from contextbase.agents.program import AgentProgram, found_program

__all__ = ["ClaudeAdapter"]

_INSIDE: Final = ("claude_agent_sdk/_bundled/claude", "node_modules/.bin/claude")
_INTERRUPT_PATIENCE: Final = 10.0  # seconds; then its process is ended
_SETTINGS: Final = json.dumps({"cleanupPeriodDays": 36_500})  # it would remove old transcripts, and with them sessions
_MODES: Final = {"plan": "plan"}


class ClaudeAdapter:
    """It reads no settings, hooks or MCP servers from files: `--setting-sources=` and `--strict-mcp-config`. It asks
    for each tool; the default profile always allows, because sandbox and gate hold."""

    name = "claude"
    capabilities = frozenset(Capability)
    paths = AgentPaths(
        folder="claude",
        state=("projects/**/*.jsonl", ".claude.json", "todos/**"),
        cache=("backups/**", "plugins/**", "statsig/**", "shell-snapshots/**"),
        secret=(".credentials.json",),
        home_link=".claude",
    )

    def version(self, place: AgentPlace) -> str | None:
        program = found_program("claude", place.program_folders, inside=_INSIDE)
        if program is None:
            return None
        environment = dict(self._environment(place))
        done = subprocess.run(
            [program, "--version"], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout.split(" ")[0].strip() or None

    async def run(self, turn: AgentTurn, place: AgentPlace, sink: EventSink, canceled: asyncio.Event) -> TurnEnd:
        program = found_program("claude", place.program_folders, inside=_INSIDE)
        if program is None:
            failure = TurnFailure(code="agent_missing", message="Claude Code is not installed in this sandbox.")
            return TurnEnd(outcome=TurnOutcome.FAILED, sdk_session_id=turn.resume, failure=failure)
        environment = {**self._environment(place), **_model_variables(turn), **turn.environment}
        line = [str(program), *_arguments(turn, place)]
        async with await AgentProgram.started(line, cwd=place.workspace, environment=environment) as process:
            return await _Conversation(turn, process, sink, canceled).finished()

    def _environment(self, place: AgentPlace) -> Mapping[str, str]:
        return {
            **place.environment,
            "ANTHROPIC_BASE_URL": place.model_url,
            "ANTHROPIC_API_KEY": "the-gateway-has-it",
            "CLAUDE_CONFIG_DIR": str(place.agent_data / self.paths.folder),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
            "CLAUDE_CODE_ENABLE_TASKS": "0",
            "ENABLE_TOOL_SEARCH": "false",  # every tool is offered from the start: not every model can search for them
        }


def _model_variables(turn: AgentTurn) -> Mapping[str, str]:
    small = turn.small_model or turn.model
    return {"ANTHROPIC_SMALL_FAST_MODEL": small, "ANTHROPIC_DEFAULT_HAIKU_MODEL": small}


def _arguments(turn: AgentTurn, place: AgentPlace) -> list[str]:
    servers = {"contextbase": {"type": "http", "url": f"{place.mcp_url}/mcp"}} if turn.options.get("mcp") else {}
    system = "\n\n".join(filter(None, (turn.system_prompt, place_instructions(place.workspace))))
    return [
        *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "--permission-prompt-tool", "stdio"),
        *("--permission-mode", _MODES.get(turn.profile, "default")),
        *("--setting-sources=", "--settings", _SETTINGS),
        *("--strict-mcp-config", "--mcp-config", json.dumps({"mcpServers": servers})),
        *("--model", turn.model),
        *(("--append-system-prompt", system) if system else ()),
        *(("--resume", turn.resume) if turn.resume else ()),
    ]


class _Conversation:
    def __init__(self, turn: AgentTurn, process: AgentProgram, sink: EventSink, canceled: asyncio.Event) -> None:
        self._turn = turn
        self._process = process
        self._sink = sink
        self._canceled = canceled
        self._translator = ClaudeTranslator(turn.key)
        self._asking: set[asyncio.Task[None]] = set()
        self._has_told_start = False

    async def finished(self) -> TurnEnd:
        await self._request("initialize", {"hooks": None})
        message = {"role": "user", "content": self._turn.message}
        await self._process.say({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""})
        reading = asyncio.create_task(self._read())
        stopping = asyncio.create_task(self._canceled.wait())
        try:
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await self._request("interrupt", {})
                await asyncio.wait((reading,), timeout=_INTERRUPT_PATIENCE)
            if reading.done():
                reading.result()
            return await self._end()
        finally:
            for task in (reading, stopping, *self._asking):
                task.cancel()
            await asyncio.gather(reading, stopping, *self._asking, return_exceptions=True)

    async def _read(self) -> None:
        async for line in self._process.lines():
            if line.get("type") == "control_request":
                self._answer_later(line)
                continue
            for kind, data in self._translator.events(line):
                await self._sink.emit(kind, data)
            if self._translator.session_id is not None and not self._has_told_start:
                self._has_told_start = True
                await self._sink.emit(
                    "run.status",
                    {
                        "state": "running",
                        "provider": "claude",
                        "sdk_session_id": self._translator.session_id,
                        "cli_version": self._translator.version,
                    },
                )
            if self._translator.end is not None:
                return

    async def _end(self) -> TurnEnd:
        for kind, data in self._translator.closing():
            await self._sink.emit(kind, data)
        session_id = self._translator.session_id or self._turn.resume
        if self._canceled.is_set():
            return TurnEnd(outcome=TurnOutcome.CANCELED, sdk_session_id=session_id)
        if self._translator.end is not None:
            return self._translator.end
        code = await self._process.wait()
        message = f"Claude Code ended with {code} in the middle of a turn. {self._process.last_words[-1000:]}"
        failure = TurnFailure(code="agent_died", message=message.strip(), is_retryable=True)
        return TurnEnd(outcome=TurnOutcome.FAILED, sdk_session_id=session_id, failure=failure)

    async def _request(self, subtype: str, values: Mapping[str, Any]) -> None:
        request = {"subtype": subtype, **values}
        await self._process.say({"type": "control_request", "request_id": f"ours-{subtype}", "request": request})

    def _answer_later(self, line: Mapping[str, Any]) -> None:
        """A person may take minutes; what the agent says meanwhile is still read."""
        task = asyncio.create_task(self._answer(str(line.get("request_id")), line.get("request") or {}))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _answer(self, request_id: str, request: Mapping[str, Any]) -> None:
        if request.get("subtype") == "can_use_tool":
            answer = {"subtype": "success", "request_id": request_id, "response": await self._permission(request)}
        else:
            answer = {"subtype": "error", "request_id": request_id, "error": "This is not offered here."}
        await self._process.say({"type": "control_response", "response": answer})

    async def _permission(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        tool, given = str(request.get("tool_name")), request.get("input")
        given = given if isinstance(given, dict) else {}
        question_id = f"{self._turn.key}:{request.get('tool_use_id')}"
        if tool == "AskUserQuestion":
            return await self._questions(question_id, given)
        if self._turn.profile == "ask":
            question = AgentQuestion(
                question_id=question_id,
                kind="permission",
                prompt=f"May the agent use {tool}?",
                options=("allow", "deny"),
                context={"tool": tool, "input": given},
            )
            answer = await self._sink.ask(question)
            if answer.get("answer") != "allow":
                return {"behavior": "deny", "message": str(answer.get("message") or "A person said no.")}
        return {"behavior": "allow", "updatedInput": given}

    async def _questions(self, question_id: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        answers = {}
        questions = given.get("questions")
        for number, one in enumerate(questions if isinstance(questions, list) else []):
            labels = tuple(str(option.get("label")) for option in one.get("options") or [] if isinstance(option, dict))
            prompt = str(one.get("question"))
            question = AgentQuestion(
                question_id=f"{question_id}:{number}", kind="question", prompt=prompt, options=labels, context=one
            )
            answers[prompt] = str((await self._sink.ask(question)).get("answer", ""))
        return {"behavior": "allow", "updatedInput": {**given, "answers": answers}}
