"""Claude Code, driven by lines of JSON on its standard input and output."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from contextbase.agents.asking import LaterAnswers, Permissions, answered
from contextbase.agents.attachments import encoded_attachment, is_image, is_shown
from contextbase.agents.carried_mcp import CarriedMcp
from contextbase.agents.claude_events import ClaudeTranslator
from contextbase.agents.edit_diff import edit_diff
from contextbase.agents.instructions import place_instructions
from contextbase.agents.kept_programs import ProgramStart
from contextbase.agents.mcp_servers import OWN_SERVER
from contextbase.agents.model import (
    AgentPaths,
    AgentPlace,
    AgentTurn,
    Capability,
    SteerMessage,
    TurnEnd,
    TurnOutcome,
)
from contextbase.agents.options import AgentOption, OptionKind
from contextbase.agents.package import AgentPackage, found_program, installed_version
from contextbase.agents.ports import EventSink
from contextbase.agents.program import AgentProgram
from contextbase.agents.turns import missing, steered, turn_end, worked

__all__ = ["ClaudeAdapter"]

_INSIDE: Final = ("claude_agent_sdk/_bundled/claude", "node_modules/.bin/claude")
_SETTINGS: Final = json.dumps({"cleanupPeriodDays": 36_500})  # it would remove old transcripts, and with them sessions
_MODES: Final = {"plan": "plan"}
_AWAKE: Final = "ours-awake"
_GREETED: Final = "greeted"
_OWN_MODES: Final = ("acceptEdits", "plan")


class ClaudeAdapter:
    """It reads no settings, hooks or MCP servers from files: `--setting-sources=` and `--strict-mcp-config`. It asks
    for each tool; the default profile always allows, because sandbox and gate hold."""

    name = "claude-code"
    other_names = ("claude",)
    default_model = None
    package = AgentPackage(
        folder="claude",
        how_to_install="pip install 'contextbase[claude]' in the server's Python, or put it into FOLDER/claude",
        python="claude_agent_sdk",
        inside=_INSIDE,
    )
    options = (
        AgentOption(
            name="permissionMode",
            kind=OptionKind.CHOICE,
            about="default and acceptEdits ask a person; bypassPermissions asks nobody, as the default profile.",
            choices=("default", "acceptEdits", "plan", "bypassPermissions"),
            profiles={"default": "ask", "acceptEdits": "ask", "plan": "plan", "bypassPermissions": "default"},
        ),
        AgentOption(name="allowedTools", kind=OptionKind.NAMES, about="Tools that it uses without being asked about."),
        AgentOption(name="disallowedTools", kind=OptionKind.NAMES, about="Tools that it does not have."),
        AgentOption(name="maxTurns", kind=OptionKind.NUMBER, about="The most answers of the model in one run."),
    )
    capabilities = frozenset(Capability)
    paths = AgentPaths(
        folder="claude",
        state=("projects/**/*.jsonl", ".claude.json", "todos/**"),
        cache=("backups/**", "plugins/**", "statsig/**", "shell-snapshots/**"),
        secret=(".credentials.json",),
        home_link=".claude",
    )

    def version(self, place: AgentPlace) -> str | None:
        return installed_version(self.package, place.program_folders, self._environment(place))

    async def run(self, turn: AgentTurn, place: AgentPlace, sink: EventSink, canceled: asyncio.Event) -> TurnEnd:
        program = found_program(self.package, place.program_folders)
        if program is None:
            return missing("Claude Code", turn)
        servers, memory = place.home / ".claude-mcp.json", place.agent_data / self.paths.folder
        start = ProgramStart(
            program=program,
            arguments=tuple(_arguments(turn, place, servers)),
            cwd=place.workspace,
            environment={**self._environment(place), **_model_variables(turn), **turn.environment},
            told=await asyncio.to_thread(_write_servers, servers, turn, place),
            resuming=("--resume", turn.resume) if turn.resume else (),
            memory=memory,
            remembers=self.paths.state,
            answers=partial(_answers, turn),
        )
        async with place.programs.program(start, conversation=turn.resume, seconds=turn.keep_seconds) as loan:
            conversation = _Conversation(turn, place, loan.program, sink, canceled)
            end = await conversation.finished()
            if end.outcome is TurnOutcome.COMPLETED and conversation.last_message and not conversation.answers.are_owed:
                loan.keep(end.sdk_session_id, last_line=(conversation.last_message,))
            return end

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
            "CLAUDE_CODE_EAGER_FLUSH": "1",  # the transcript is whole when the turn ends, not when the program does
            "ENABLE_TOOL_SEARCH": "false",  # every tool is offered from the start: not every model can search for them
        }


def _model_variables(turn: AgentTurn) -> Mapping[str, str]:
    small = turn.small_model or turn.model
    return {"ANTHROPIC_SMALL_FAST_MODEL": small, "ANTHROPIC_DEFAULT_HAIKU_MODEL": small}


def _write_servers(file: Path, turn: AgentTurn, place: AgentPlace) -> str:
    """In a file: variables of a server may be secrets, and arguments are seen by every process. Returns its text."""
    servers = {}
    for server in turn.servers:
        if server.command:
            [command, *arguments] = server.command
            values = {"command": command, "args": arguments, "env": dict(server.environment)}
            servers[server.name] = {"type": "stdio", **values}
        elif server.name == OWN_SERVER:  # asked through us: the program works sooner than with a connection of its own
            servers[server.name] = {"type": "sdk", "name": server.name}
        else:
            servers[server.name] = {"type": "http", "url": f"{place.mcp_url}{server.path}"}
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    text = json.dumps({"mcpServers": servers})
    file.write_text(text, encoding="utf-8")
    return text


def _arguments(turn: AgentTurn, place: AgentPlace, servers: Path) -> list[str]:
    system = "\n\n".join(filter(None, (turn.system_prompt, place_instructions(place.workspace))))
    return [
        *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "--replay-user-messages", "--permission-prompt-tool", "stdio"),
        *("--permission-mode", _mode(turn)),
        *("--setting-sources=", "--settings", _SETTINGS),
        *("--strict-mcp-config", "--mcp-config", str(servers)),
        *("--model", turn.model),
        *(("--append-system-prompt", system) if system else ()),
        *_options(turn.options),
    ]


def _mode(turn: AgentTurn) -> str:
    asked = turn.options.get("permissionMode")
    return str(asked) if asked in _OWN_MODES else _MODES.get(turn.profile, "default")


def _options(given: Mapping[str, Any]) -> list[str]:
    arguments = []
    for name, argument in (("allowedTools", "--allowedTools"), ("disallowedTools", "--disallowedTools")):
        if given.get(name):
            arguments.append(f"{argument}={','.join(given[name])}")
    if given.get("maxTurns"):
        arguments.append(f"--max-turns={given['maxTurns']}")
    return arguments


def _content(turn: AgentTurn, workspace: Path) -> str | list[dict[str, Any]]:
    """With what can be shown of the files that came with the message."""
    blocks: list[dict[str, Any]] = []
    for one in turn.attachments:
        if is_shown(one, workspace):
            source = {"type": "base64", "media_type": one.media_type, "data": encoded_attachment(one, workspace)}
            blocks.append({"type": "image" if is_image(one) else "document", "source": source})
    return [{"type": "text", "text": turn.message}, *blocks] if blocks else turn.message


async def _answers(turn: AgentTurn, program: AgentProgram) -> bool:
    """It is told the mode that it is in. Not if it asks for something meanwhile: nobody answers yet."""
    request = {"subtype": "set_permission_mode", "mode": _mode(turn)}
    question = {"type": "control_request", "request_id": _AWAKE, "request": request}
    asks: list[Mapping[str, Any]] = []

    def is_answer(line: Mapping[str, Any]) -> bool:
        if line.get("type") == "control_request":
            asks.append(line)
        return (line.get("response") or {}).get("request_id") == _AWAKE

    return await program.answered(question, is_answer) and not asks


class _Conversation:
    def __init__(
        self, turn: AgentTurn, place: AgentPlace, process: AgentProgram, sink: EventSink, canceled: asyncio.Event
    ) -> None:
        self._turn = turn
        self._place = place
        self._permissions = Permissions(turn, sink)
        self._process = process
        self._sink = sink
        self._canceled = canceled
        self._translator = ClaudeTranslator(turn.key)
        self.last_message: str | None = None  # of the agent, by its name in the transcript
        self.answers = LaterAnswers()
        self._has_told_start = False
        self._steered: set[str] = set()  # messages that it has not read yet
        self._own_tools = CarriedMcp(f"{place.mcp_url}/mcp")

    async def finished(self) -> TurnEnd:
        if _GREETED not in self._process.known:
            self._process.known[_GREETED] = "yes"
            # Otherwise a conversation that goes on keeps the instructions and the tools that it began with.
            await self._request("initialize", {"hooks": None, "systemPromptSnapshot": False})
        message = {"role": "user", "content": await asyncio.to_thread(_content, self._turn, self._place.workspace)}
        await self._process.say({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""})
        async with self.answers:
            async with steered(self._sink, self._steer):
                await worked(self._read(), self._canceled, lambda: self._request("interrupt", {}))
            return await self._end()

    async def _read(self) -> None:
        async for line in self._process.lines():
            if line.get("type") == "control_request":
                self.answers.begin(self._answer(str(line.get("request_id")), line.get("request") or {}))
                continue
            if line.get("isReplay"):
                await self._replayed(str(line.get("uuid")))
                continue
            if line.get("type") == "assistant" and not line.get("parent_tool_use_id"):
                self.last_message = str(line.get("uuid"))
            for kind, data in self._translator.events(line):
                await self._sink.emit(kind, data)
            if self._translator.session_id is not None and not self._has_told_start:
                self._has_told_start = True
                await self._sink.emit(
                    "run.status",
                    {
                        "state": "running",
                        "provider": ClaudeAdapter.name,
                        "sdk_session_id": self._translator.session_id,
                        "cli_version": self._translator.version,
                    },
                )
            if self._translator.end is not None:
                if not self._steered:
                    return
                self._translator.end = None  # it goes on with what it has not read

    async def _steer(self, message: SteerMessage) -> None:
        self._steered.add(message.steer_id)
        said = {"role": "user", "content": message.text}
        about = {"parent_tool_use_id": None, "session_id": "", "uuid": message.steer_id}
        await self._process.say({"type": "user", "message": said, **about})

    async def _replayed(self, message_id: str) -> None:
        """It says a message again when it reads it."""
        if message_id in self._steered:
            self._steered.remove(message_id)
            await self._sink.emit("message.steered", {"steer_id": message_id})

    async def _end(self) -> TurnEnd:
        return await turn_end(
            "Claude Code",
            self._translator,
            self._process,
            self._sink,
            canceled=self._canceled,
            session_id=self._translator.session_id or self._turn.resume,
        )

    async def _request(self, subtype: str, values: Mapping[str, Any]) -> None:
        request = {"subtype": subtype, **values}
        await self._process.say({"type": "control_request", "request_id": f"ours-{subtype}", "request": request})

    async def _answer(self, request_id: str, request: Mapping[str, Any]) -> None:
        if request.get("subtype") == "mcp_message":
            message = request.get("message")
            carried = await self._own_tools.answer(message if isinstance(message, dict) else {})
            answer = {"subtype": "success", "request_id": request_id, "response": {"mcp_response": carried}}
        elif request.get("subtype") == "can_use_tool":
            answer = {"subtype": "success", "request_id": request_id, "response": await self._permission(request)}
        else:
            answer = {"subtype": "error", "request_id": request_id, "error": "This is not offered here."}
        await self._process.say({"type": "control_response", "response": answer})

    async def _permission(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        tool, given = str(request.get("tool_name")), request.get("input")
        given = given if isinstance(given, dict) else {}
        tool_id = str(request.get("tool_use_id"))
        if tool == "AskUserQuestion":
            answers = await answered(self._turn, self._sink, tool_id, given.get("questions"))
            said = {str(one.get("question")): ", ".join(answer) for one, answer in answers}
            return {"behavior": "allow", "updatedInput": {**given, "answers": said}}
        is_allowed, refusal = await self._permissions.allowed(
            tool_id, tool, given, diff=lambda: edit_diff(self._place.workspace, given), tool_id=tool_id
        )
        if not is_allowed:
            return {"behavior": "deny", "message": refusal}
        return {"behavior": "allow", "updatedInput": given}
