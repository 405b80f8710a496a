"""Opencode, driven as its server on a loopback port: HTTP, and its events as a stream."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from contextbase.agents.asking import LaterAnswers, Permissions, answered
from contextbase.agents.attachments import encoded_attachment, is_shown
from contextbase.agents.instructions import place_instructions
from contextbase.agents.kept_programs import ProgramStart
from contextbase.agents.loopback_http import requested, server_sent_events
from contextbase.agents.mcp_servers import AgentMcpServer
from contextbase.agents.model import AgentPaths, AgentPlace, AgentTurn, Capability, TurnEnd, TurnOutcome
from contextbase.agents.opencode_database import OpencodeDatabase
from contextbase.agents.opencode_events import OpencodeTranslator
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
    turn_end,
    worked,
)

__all__ = ["OpencodeAdapter"]

_INSIDE: Final = (
    *("node_modules/opencode-ai/bin/opencode.exe", "node_modules/.bin/opencode"),
    *("node_modules/opencode-linux-x64/bin/opencode", "node_modules/opencode-linux-arm64/bin/opencode"),
)
_SWITCHES: Final = (
    *("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "SHARE", "CLAUDE_CODE", "PROJECT_CONFIG"),
    "EXTERNAL_SKILLS",
)
_DIALECTS: Final = {"contextbase": "@ai-sdk/openai-compatible", "contextbase-anthropic": "@ai-sdk/anthropic"}
"""Names of the gateway as a provider of models, and the package, part of Opencode, that speaks with it."""

_LISTENING: Final = "listening on "
_URL: Final = "url"  # where a program listens
_VERSION: Final = "version"
_OK: Final = 200
_LONGEST_ANSWER: Final = 4 << 20
_REQUEST_SECONDS: Final = 300  # its first requests take long on a slow machine
_ASKED: Final = ("edit", "bash", "webfetch")


class OpencodeAdapter:
    """It reads no settings or tools of the workspace: `OPENCODE_DISABLE_PROJECT_CONFIG` and `--pure`. Plugins it would
    run in spite of both, so a workspace with plugins is refused."""

    name = "opencode"
    other_names = ()
    default_model = None
    package = AgentPackage(
        folder="opencode",
        how_to_install="npm install --prefix FOLDER/opencode opencode-ai",
        npm="opencode-ai",
        inside=_INSIDE,
    )
    options = (
        AgentOption(
            name="agent",
            kind=OptionKind.CHOICE,
            about="Which of Opencode's agents works.",
            choices=("build", "plan", "general", "explore"),
            profiles={"plan": "plan"},
        ),
        AgentOption(name="tools", kind=OptionKind.SWITCHES, about="Tools that it has or does not have."),
    )
    capabilities = frozenset(Capability) - {Capability.STEER}
    paths = AgentPaths(folder="opencode", state=("opencode.db",), cache=("opencode.db.new*",))

    def version(self, place: AgentPlace) -> str | None:
        return installed_version(self.package, place.program_folders, _environment(place))

    async def run(self, turn: AgentTurn, place: AgentPlace, sink: EventSink, canceled: asyncio.Event) -> TurnEnd:
        program = found_program(self.package, place.program_folders)
        if program is None:
            return missing("Opencode", turn)
        if (plugin := await asyncio.to_thread(_plugin_of_the_tree, place.workspace)) is not None:
            message = f"Opencode would run a plugin of this workspace, {plugin}. Remove it, or choose another agent."
            return failed("agent_error", message, turn.resume)
        memory = place.agent_data / self.paths.folder
        live = _folder(place) / "data" / "opencode" / "opencode.db"
        database = OpencodeDatabase(live=live, kept=memory / "opencode.db")
        await asyncio.to_thread(database.restore)
        configuration = {"OPENCODE_CONFIG_CONTENT": json.dumps(_configuration(turn, place))}
        start = ProgramStart(
            program=program,
            arguments=("serve", "--pure", "--hostname", "127.0.0.1", "--port", "0"),
            cwd=place.workspace,
            environment={**_environment(place), **configuration, **turn.environment},
            memory=memory,
            remembers=self.paths.state,
            answers=partial(_knows, turn, place),
        )
        async with place.programs.program(start, conversation=turn.resume, seconds=turn.keep_seconds) as loan:
            is_whole = False
            try:
                conversation = _Conversation(turn, place, loan.program, sink, canceled)
                end = await conversation.finished()
                is_whole = end.outcome is TurnOutcome.COMPLETED and not conversation.answers.are_owed
            finally:
                await asyncio.to_thread(database.keep)
                if not is_whole:
                    loan.program.ask_to_end()
            if is_whole:
                loan.keep(end.sdk_session_id)
            return end


def _plugin_of_the_tree(workspace: Path) -> str | None:
    """Where Opencode would find code to run in its own process, or a file that could name some. Links are followed, as
    Opencode does."""
    for pattern in ("plugin/*.[jt]s", "plugins/*.[jt]s"):
        for found in (workspace / ".opencode").glob(pattern):
            return str(found.relative_to(workspace))
    for place in (workspace, workspace / ".opencode"):
        for name in ("opencode.json", "opencode.jsonc"):
            with contextlib.suppress(OSError):
                if b"plugin" in (place / name).read_bytes():
                    return str((place / name).relative_to(workspace))
    return None


def _folder(place: AgentPlace) -> Path:
    return place.home / ".opencode-home"


def _environment(place: AgentPlace) -> Mapping[str, str]:
    folders = {f"XDG_{name.upper()}_HOME": str(_folder(place) / name) for name in ("data", "config", "state", "cache")}
    return {**place.environment, **folders, **{f"OPENCODE_DISABLE_{switch}": "1" for switch in _SWITCHES}}


def _provider(model: str) -> str:
    """The gateway serves each model in the dialect of its maker."""
    return "contextbase-anthropic" if model.startswith("claude") else "contextbase"


def _configuration(turn: AgentTurn, place: AgentPlace) -> dict[str, Any]:
    small = turn.small_model or turn.model
    about = {
        "tool_call": True,
        "reasoning": True,
        "attachment": True,
        "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
        "limit": {"context": 200_000, "output": 32_000},
    }
    options = {"baseURL": f"{place.model_url}/v1", "apiKey": "the-gateway-has-it"}
    models = {name: {"name": name, **about} for name in (turn.model, small)}
    asked = [*_ASKED, *(f"{server.name}_*" for server in turn.mcp_servers)]
    return {
        "provider": {name: {"npm": npm, "options": options, "models": models} for name, npm in _DIALECTS.items()},
        "enabled_providers": list(_DIALECTS),
        "model": f"{_provider(turn.model)}/{turn.model}",
        "small_model": f"{_provider(small)}/{small}",
        "mcp": {server.name: _server(server, place) for server in turn.servers},
        "permission": dict.fromkeys(asked, "ask") if turn.profile == "ask" else {},
        "snapshot": False,
        "share": "disabled",
        "autoupdate": False,
    }


def _server(server: AgentMcpServer, place: AgentPlace) -> dict[str, Any]:
    if server.command:
        return {"type": "local", "command": list(server.command), "environment": dict(server.environment)}
    return {"type": "remote", "url": f"{place.mcp_url}{server.path}", "oauth": False, "timeout": 600_000}


def _files(turn: AgentTurn, workspace: Path) -> list[dict[str, Any]]:
    """What can be shown of the files that came with the message."""
    return [
        {
            "type": "file",
            "mime": one.media_type,
            "filename": Path(one.path).name,
            "url": f"data:{one.media_type};base64,{encoded_attachment(one, workspace)}",
        }
        for one in turn.attachments
        if is_shown(one, workspace)
    ]


async def _knows(turn: AgentTurn, place: AgentPlace, program: AgentProgram) -> bool:
    """The conversation."""
    async with requested(f"{program.known[_URL]}/session/{quote(str(turn.resume), safe='')}?{_where(place)}") as answer:
        return answer.status == _OK


def _where(place: AgentPlace) -> str:
    return f"directory={quote(str(place.workspace), safe='')}"


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
        self._translator = OpencodeTranslator(turn.key, turn.model)
        self._connected = asyncio.Event()
        self.answers = LaterAnswers()

    async def finished(self) -> TurnEnd:
        try:
            async with self.answers:
                await worked(read_beside(self._start(), self._read()), self._canceled, self._abort)
        except ConversationForgotten as forgotten:
            return resume_failed("Opencode", self._turn, str(forgotten))
        except ProgramRefused as refused:
            return failed("agent_error", str(refused), self._translator.session_id or self._turn.resume)
        except OSError:
            pass  # it has died: told below
        return await self._end()

    async def _read(self) -> None:
        if _URL not in self._process.known:
            said = await self._process.heard(_LISTENING)  # who asks it before hangs
            if said is None:
                return
            self._process.known[_URL] = said.partition(_LISTENING)[2].strip()
        draining = asyncio.create_task(self._process.drained())
        try:
            async with (
                requested(f"{self._process.known[_URL]}/event?{_where(self._place)}") as answer,
                aclosing(server_sent_events(answer.pieces)) as events,
            ):
                async for event in events:
                    await self._take(event)
                    if self._translator.end is not None:
                        return
        finally:
            draining.cancel()

    async def _take(self, event: Mapping[str, Any]) -> None:
        kind, given = event.get("type"), event.get("properties")
        if kind == "server.connected":
            self._connected.set()
        elif kind in {"permission.asked", "question.asked"} and isinstance(given, dict):
            self.answers.begin(self._answer(str(kind), given))
        for name, data in self._translator.events(event):
            await self._sink.emit(name, data)

    async def _start(self) -> None:
        await self._connected.wait()
        session_id = self._translator.session_id = await self._open_session()
        status = {"state": "running", "provider": OpencodeAdapter.name, "sdk_session_id": session_id}
        await self._sink.emit("run.status", {**status, "cli_version": self._process.known[_VERSION]})
        system = "\n\n".join(filter(None, (self._turn.system_prompt, place_instructions(self._place.workspace))))
        message: dict[str, Any] = {
            "parts": [{"type": "text", "text": self._turn.message}, *_files(self._turn, self._place.workspace)],
            "model": {"providerID": _provider(self._turn.model), "modelID": self._turn.model},
        }
        if system:
            message["system"] = system
        if agent := self._turn.options.get("agent") or (self._turn.profile == "plan" and "plan"):
            message["agent"] = agent
        if tools := self._turn.options.get("tools"):
            message["tools"] = tools
        await self._request("POST", f"/session/{session_id}/prompt_async", message)

    async def _open_session(self) -> str:
        if self._turn.resume and _VERSION in self._process.known:  # it has slept, and knows the conversation
            return self._turn.resume
        if self._turn.resume:
            try:
                session = await self._request("GET", f"/session/{quote(self._turn.resume, safe='')}")
            except ProgramRefused as refused:
                raise ConversationForgotten(str(refused)) from None
        else:
            session = await self._request("POST", "/session", {"title": "contextbase"})
        self._process.known[_VERSION] = str(session.get("version"))
        return str(session.get("id"))

    async def _abort(self) -> None:
        if self._translator.session_id is None:  # it has not begun to work
            self._process.ask_to_end()
        else:
            await self._request("POST", f"/session/{self._translator.session_id}/abort", {})

    async def _end(self) -> TurnEnd:
        return await turn_end(
            "Opencode",
            self._translator,
            self._process,
            self._sink,
            canceled=self._canceled,
            session_id=self._translator.session_id or self._turn.resume,
        )

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        async with asyncio.timeout(_REQUEST_SECONDS):
            async with requested(
                f"{self._process.known[_URL]}{path}?{_where(self._place)}", method=method, body=body
            ) as answer:
                said = await answer.read(_LONGEST_ANSWER)
        if answer.status >= 400:
            raise ProgramRefused(f"Opencode refused {method} {path}: {said[:1000].decode(errors='replace')}")
        value = json.loads(said) if said else {}
        return value if isinstance(value, dict) else {}

    async def _answer(self, kind: str, given: Mapping[str, Any]) -> None:
        name = str(given.get("id"))
        if kind == "question.asked":
            answers = await answered(self._turn, self._sink, name, given.get("questions"))
            await self._request("POST", f"/question/{name}/reply", {"answers": [said for _, said in answers]})
            return
        tool, about = str(given.get("permission")), given.get("metadata")
        about = dict(about) if isinstance(about, dict) else {}
        diff, call = str(about.pop("diff", "") or ""), given.get("tool")
        tool_id = str(call.get("callID")) if isinstance(call, dict) and call.get("callID") else None
        shown = about or {"patterns": given.get("patterns")}
        is_allowed, refusal = await self._permissions.allowed(name, tool, shown, diff=lambda: diff, tool_id=tool_id)
        reply = {"reply": "once"} if is_allowed else {"reply": "reject", "message": refusal}  # it goes on after both
        await self._request("POST", f"/permission/{name}/reply", reply)
