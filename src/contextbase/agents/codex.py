"""Codex, driven as its app server: JSON-RPC, a message a line, on its standard input and output."""

import asyncio
import itertools
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from contextbase.agents.asking import LaterAnswers, Permissions, answered
from contextbase.agents.attachments import is_image, is_shown
from contextbase.agents.codex_configuration import GATEWAY_KEY, codex_configuration, write_configuration
from contextbase.agents.codex_events import CodexTranslator
from contextbase.agents.codex_instructions import codex_instructions, instructions_message, last_instructions
from contextbase.agents.kept_programs import ProgramStart
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
from contextbase.agents.turns import (
    ConversationForgotten,
    ProgramRefused,
    failed,
    missing,
    read_beside,
    resume_failed,
    steered,
    turn_end,
    worked,
)

__all__ = ["CodexAdapter"]

_TARGET: Final = f"vendor/{platform.machine()}-unknown-linux-musl/bin/codex"
_INSIDE: Final = (
    f"node_modules/@openai/codex-linux-x64/{_TARGET}",
    f"node_modules/@openai/codex-linux-arm64/{_TARGET}",
    "node_modules/.bin/codex",
)
_AWAKE: Final = "awake"
_VERSION: Final = "version"  # of a program that was greeted
_APPROVALS: Final = {
    "item/commandExecution/requestApproval": "commands",
    "item/fileChange/requestApproval": "file changes",
}


class CodexAdapter:
    """Its configuration is written for each run and marks the workspace as untrusted: it then reads no settings, hooks
    or rules there. It asks for each command and patch; the default profile always allows, because sandbox and gate
    hold. Its own sandbox is off: it cannot work in ours."""

    name = "codex-cli"
    other_names = ("codex",)
    default_model = "gpt-5.5"  # it has a tool for patches with models it knows
    package = AgentPackage(
        folder="codex",
        how_to_install="npm install --prefix FOLDER/codex @openai/codex",
        npm="@openai/codex",
        inside=_INSIDE,
    )
    options = (
        AgentOption(
            name="profile",
            kind=OptionKind.CHOICE,
            about="The execution profile, by Codex's word for it.",
            choices=("default", "ask", "plan"),
            profiles={"default": "default", "ask": "ask", "plan": "plan"},
        ),
        AgentOption(
            name="approvalMode",
            kind=OptionKind.CHOICE,
            about="never asks nobody, as the default profile; the others ask a person for commands and changes.",
            choices=("untrusted", "on-request", "on-failure", "never"),
            profiles={"untrusted": "ask", "on-request": "ask", "on-failure": "ask", "never": "default"},
        ),
        AgentOption(
            name="sandboxMode",
            kind=OptionKind.CHOICE,
            about="Both are the session's own sandbox, in which Codex's cannot work.",
            choices=("workspace-write", "danger-full-access"),
        ),
    )
    capabilities = frozenset(Capability)
    paths = AgentPaths(
        folder="codex",
        state=("sessions/**/*.jsonl",),
        cache=(
            *("config.toml", "*.sqlite*", "skills/.system/**", "installation_id", "thread-writer-locks/**"),
            *(".sandbox_migration", "tmp/**", "shell_snapshots/**", "log/**", "models_cache.json", "version.json"),
        ),
        secret=("auth.json",),
        home_link=".codex",
    )

    def version(self, place: AgentPlace) -> str | None:
        return installed_version(self.package, place.program_folders, self._environment(place))

    async def run(self, turn: AgentTurn, place: AgentPlace, sink: EventSink, canceled: asyncio.Event) -> TurnEnd:
        program = found_program(self.package, place.program_folders)
        if program is None:
            return missing("Codex", turn)
        memory = place.agent_data / self.paths.folder
        configuration = codex_configuration(turn, place)
        await asyncio.to_thread(write_configuration, memory, place, configuration)
        start = ProgramStart(
            program=program,
            arguments=("app-server",),
            cwd=place.workspace,
            environment={**self._environment(place), **turn.environment},
            told=json.dumps([configuration, turn.profile, codex_instructions(turn, place)]),
            memory=memory,
            remembers=self.paths.state,
            answers=_answers,
        )
        async with place.programs.program(start, conversation=turn.resume, seconds=turn.keep_seconds) as loan:
            conversation = _Conversation(turn, place, loan.program, sink, canceled)
            end = await conversation.finished()
            if end.outcome is TurnOutcome.COMPLETED and not conversation.answers.are_owed:
                loan.keep(end.sdk_session_id, last_line=("task_complete", str(conversation.turn_id)))
            return end

    def _environment(self, place: AgentPlace) -> Mapping[str, str]:
        return {
            **place.environment,
            GATEWAY_KEY: "the-gateway-has-it",
            "CODEX_HOME": str(place.agent_data / self.paths.folder),
            "CODEX_SQLITE_HOME": str(place.home / ".codex-databases"),  # made again from the sessions' files
        }


async def _answers(program: AgentProgram) -> bool:
    question = {"id": _AWAKE, "method": "thread/loaded/list", "params": {}}
    return await program.answered(question, lambda line: line.get("id") == _AWAKE)


class _Conversation:
    def __init__(
        self, turn: AgentTurn, place: AgentPlace, process: AgentProgram, sink: EventSink, canceled: asyncio.Event
    ) -> None:
        self._turn = turn
        self._permissions = Permissions(turn, sink)
        self._place = place
        self._process = process
        self._sink = sink
        self._canceled = canceled
        self._translator = CodexTranslator(turn.key, turn.model)
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.answers = LaterAnswers()
        self._has_begun = asyncio.Event()

    async def finished(self) -> TurnEnd:
        try:
            async with self.answers, steered(self._sink, self._steer):
                await worked(read_beside(self._start(), self._read()), self._canceled, self._interrupt)
        except ConversationForgotten as forgotten:
            return resume_failed("Codex", self._turn, str(forgotten))
        except ProgramRefused as refused:
            return failed("agent_error", str(refused), self._translator.thread_id or self._turn.resume)
        return await self._end()

    @property
    def turn_id(self) -> str | None:
        """As it names the turn."""
        return self._translator.turn_id

    async def _start(self) -> None:
        if _VERSION not in self._process.known:
            await self._greet()
            self._translator.thread_id = await self._open_thread()
        else:  # it has slept, with this conversation open
            self._translator.thread_id = self._turn.resume
        thread_id = str(self._translator.thread_id)
        status = {
            "state": "running",
            "provider": CodexAdapter.name,
            "sdk_session_id": thread_id,
            "cli_version": self._process.known[_VERSION],
        }
        await self._sink.emit("run.status", status)
        await self._request("turn/start", self._turn_values(thread_id))
        self._has_begun.set()

    async def _greet(self) -> None:
        client = {"name": "contextbase", "title": "contextbase", "version": "1"}
        about = await self._request("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        self._process.known[_VERSION] = str(about.get("userAgent", "")).partition("/")[2].partition(" ")[0]
        await self._process.say({"method": "initialized"})

    async def _open_thread(self) -> str:
        values: dict[str, Any] = {
            "cwd": str(self._place.workspace),
            "model": self._turn.model,
            "modelProvider": "contextbase",
            "approvalPolicy": "untrusted",
            "sandbox": "danger-full-access",
            "developerInstructions": codex_instructions(self._turn, self._place),
        }
        if self._turn.resume:
            resumed = {"threadId": self._turn.resume, "excludeTurns": True}
            try:
                started = await self._request("thread/resume", values | resumed)
            except ProgramRefused as refused:
                raise ConversationForgotten(str(refused)) from None
            await self._tell_changed_instructions(self._turn.resume)
        else:
            started = await self._request("thread/start", values)
        return str((started.get("thread") or {}).get("id"))

    async def _tell_changed_instructions(self, thread_id: str) -> None:
        memory = self._place.agent_data / CodexAdapter.paths.folder
        last = await asyncio.to_thread(last_instructions, memory, thread_id)
        message = instructions_message(codex_instructions(self._turn, self._place), last)
        if message is not None:
            await self._request("thread/inject_items", {"threadId": thread_id, "items": [message]})

    def _turn_values(self, thread_id: str) -> dict[str, Any]:
        images = [
            {"type": "localImage", "path": str(self._place.workspace / one.path)}
            for one in self._turn.attachments
            if is_image(one) and is_shown(one, self._place.workspace)
        ]
        given = [{"type": "text", "text": self._turn.message}, *images]
        values: dict[str, Any] = {"threadId": thread_id, "input": given}
        if self._turn.profile == "plan":
            values["collaborationMode"] = {"mode": "plan", "settings": {"model": self._turn.model}}
        return values

    async def _read(self) -> None:
        async for line in self._process.lines():
            if "method" not in line:
                self._answered(line)
            elif "id" in line:
                self.answers.begin(self._answer(line))
            else:
                for kind, data in self._translator.events(line):
                    await self._sink.emit(kind, data)
                if self._translator.end is not None:
                    return

    async def _end(self) -> TurnEnd:
        return await turn_end(
            "Codex",
            self._translator,
            self._process,
            self._sink,
            canceled=self._canceled,
            session_id=self._translator.thread_id or self._turn.resume,
        )

    async def _interrupt(self) -> None:
        thread_id, turn_id = self._translator.thread_id, self._translator.turn_id
        if turn_id is None:  # it has not begun to work
            self._process.end_input()
            return
        values = {"threadId": thread_id, "turnId": turn_id}
        await self._process.say({"id": "interrupt", "method": "turn/interrupt", "params": values})

    async def _steer(self, message: SteerMessage) -> None:
        await self._has_begun.wait()
        values = {
            "threadId": self._translator.thread_id,
            "expectedTurnId": self._translator.turn_id,
            "input": [{"type": "text", "text": message.text}],
        }
        with suppress(ProgramRefused):  # the turn has just ended: the message gets one of its own
            await self._request("turn/steer", values)
            await self._sink.emit("message.steered", {"steer_id": message.steer_id})

    async def _request(self, method: str, values: Mapping[str, Any]) -> dict[str, Any]:
        name = f"{self._turn.key}-{next(self._numbers)}"
        self._waiting[name] = asyncio.get_running_loop().create_future()
        await self._process.say({"id": name, "method": method, "params": values})
        return await self._waiting[name]

    def _answered(self, line: Mapping[str, Any]) -> None:
        future = self._waiting.pop(str(line.get("id")), None)
        if future is None or future.done():
            return
        if isinstance(line.get("result"), dict):
            future.set_result(line["result"])
        else:
            error = line.get("error")
            said = error.get("message") if isinstance(error, dict) else error
            future.set_exception(ProgramRefused(f"Codex refused to start the turn: {str(said)[:1000]}"))

    async def _answer(self, line: Mapping[str, Any]) -> None:
        method, given = str(line.get("method")), line.get("params")
        given = given if isinstance(given, dict) else {}
        item_id = str(given.get("itemId"))
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "This is not offered here."}}
        if method in _APPROVALS:
            item = self._translator.items.get(item_id, {})
            changes = [change for change in item.get("changes") or [] if isinstance(change, dict)]
            shown = {"command": given.get("command") or item.get("command"), "cwd": given.get("cwd")}
            if changes:
                shown = {"path": ", ".join(str(change.get("path")) for change in changes), "changes": changes}
            diff = "".join(map(_diff, changes))
            is_allowed, _ = await self._permissions.allowed(
                item_id, _APPROVALS[method], shown, diff=lambda: diff, tool_id=item_id
            )
            answer = {"result": {"decision": "accept" if is_allowed else "decline"}}
        elif method == "item/tool/requestUserInput":
            answers = await answered(self._turn, self._sink, item_id, given.get("questions"))
            answer = {"result": {"answers": {str(one.get("id")): {"answers": said} for one, said in answers}}}
        elif method == "mcpServer/elicitation/request":
            answer = {"result": {"action": "decline", "content": None}}
        await self._process.say({"id": line["id"], **answer})


def _diff(change: Mapping[str, Any]) -> str:
    """Of a file that is new or removed Codex tells the content."""
    kind, text = (change.get("kind") or {}).get("type"), str(change.get("diff") or "")
    mark = {"add": "+", "delete": "-"}.get(str(kind), "")
    lines = "".join(f"{mark}{line}\n" for line in text.splitlines())
    return f"--- {change.get('path')}\n+++ {change.get('path')}\n{lines}"
