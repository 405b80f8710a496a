"""Calls about runs: start, cancel, status, events, questions, todos."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from contextbase.agents.mcp_servers import AgentMcpServer
from contextbase.agents.model import AgentAttachment, AgentTurn, SteerMessage
from contextbase.agents.registry import adapters
from contextbase.executor.calls import CallAnswer, CallHandler, CallRefused, ExecutorCall
from contextbase.executor.journal import EventJournal
from contextbase.executor.runs import RunInProgress, RunSupervisor

__all__ = ["RunCalls"]

_TEXTS: Final = ("small_model", "resume", "state_version", "history", "system_prompt", "notes")


class RunCalls:
    def __init__(self, *, runs: RunSupervisor, journal: EventJournal, about: Mapping[str, Any]) -> None:
        self._runs = runs
        self._journal = journal
        self._about = about

    def handlers(self) -> dict[tuple[str, str], CallHandler]:
        return {
            ("POST", "/run"): self.run,
            ("POST", "/cancel"): self.cancel,
            ("POST", "/steer"): self.steer,
            ("GET", "/status"): self.status,
            ("GET", "/events"): self.events,
            ("POST", "/human-loop/reply"): self.reply,
            ("GET", "/human-loop/pending"): self.pending,
            ("GET", "/runs/{run_id}"): self.attempts,
            ("GET", "/runs/{run_id}/todos"): self.todos,
            ("GET", "/runs/{run_id}/todos/events"): self.todo_events,
        }

    async def run(self, call: ExecutorCall) -> CallAnswer:
        turn = _turn(await call.json())
        try:
            is_new = self._runs.start(turn)
        except RunInProgress:
            current = self._runs.current
            key = "" if current is None else current.key
            raise CallRefused(409, "run_in_progress", f"Run {key} is at work here; cancel it or wait.") from None
        outcome = self._runs.outcome(turn.key)
        state = "running" if outcome is None else "finished"
        values = {"run_id": turn.run_id, "attempt": turn.attempt, "state": state, "outcome": outcome}
        values["after"] = self._runs.began_after(turn.key)
        return CallAnswer(status=202 if is_new else 200, values=values)

    async def cancel(self, call: ExecutorCall) -> CallAnswer:
        body = await call.json()
        run_id = body.get("run_id")
        is_running = self._runs.cancel(None if run_id is None else str(run_id), str(body.get("reason") or "user"))
        return CallAnswer(values={"state": "canceling" if is_running else "idle"})

    async def steer(self, call: ExecutorCall) -> CallAnswer:
        body = await call.json()
        message = SteerMessage(steer_id=str(body.get("steer_id")), text=str(body.get("text") or ""))
        is_given = self._runs.steer(str(body.get("run_id")), message)
        return CallAnswer(values={"state": "given" if is_given else "refused"})

    async def status(self, call: ExecutorCall) -> CallAnswer:
        del call
        current = self._runs.current
        values = {
            **self._about,
            "journal": self._journal.id,
            "last": self._journal.last,
            "state": "idle" if current is None else "running",
            "run_id": None if current is None else current.run_id,
            "attempt": None if current is None else current.attempt,
            "steering": self._runs.steering,
            "kept_process": self._runs.kept_process,
            "agents": [{"name": each.name, "capabilities": sorted(each.capabilities)} for each in adapters()],
        }
        return CallAnswer(values=values)

    async def events(self, call: ExecutorCall) -> CallAnswer:
        after = call.number("after", 0)
        if after > self._journal.last:
            message = f"The journal ends at {self._journal.last}: {after} is of another one."
            raise CallRefused(409, "cursor_outdated", message)
        head = {"journal": self._journal.id, "last": self._journal.last}
        return CallAnswer(pieces=self._journal.follow(after), head=head)

    async def reply(self, call: ExecutorCall) -> CallAnswer:
        body = await call.json()
        question_id, answer = str(body.get("question_id")), body.get("answer")
        if not isinstance(answer, dict):
            raise CallRefused(400, "invalid_input", "The answer is a JSON object.")
        if not self._runs.questions.answer(question_id, answer):
            raise CallRefused(404, "not_found", f"Nobody waits for an answer to question {question_id[:200]}.")
        return CallAnswer(values={"question_id": question_id})

    async def pending(self, call: ExecutorCall) -> CallAnswer:
        del call
        return CallAnswer(values={"questions": self._runs.questions.pending()})

    async def attempts(self, call: ExecutorCall) -> CallAnswer:
        """Which attempts of a run were started here, and how they ended."""
        return CallAnswer(values={"attempts": self._runs.attempts(call.names["run_id"])})

    async def todos(self, call: ExecutorCall) -> CallAnswer:
        return CallAnswer(values={"todos": self._runs.todos(call.names["run_id"])})

    async def todo_events(self, call: ExecutorCall) -> CallAnswer:
        return CallAnswer(pieces=self._todo_lines(call.number("after", 0)))

    async def _todo_lines(self, after: int) -> AsyncIterator[bytes]:
        async for piece in self._journal.follow(after):
            for line in piece.splitlines(keepends=True):
                if b'"type":"todo.' in line:
                    yield line


def _turn(body: Mapping[str, Any]) -> AgentTurn:
    """Checked: the server is trusted, but a mistake of its is told, not run."""
    limits = body.get("limits") or {}
    seconds, output, environment = limits.get("seconds"), limits.get("output_bytes"), body.get("environment") or {}
    kept = limits.get("keep_seconds", 0)
    texts = {name: body.get(name) for name in _TEXTS}
    required = {name: body.get(name) for name in ("run_id", "provider", "prompt", "model")}
    wrong = [name for name, value in required.items() if not isinstance(value, str) or not value]
    wrong += [name for name, value in texts.items() if not isinstance(value, str | None)]
    wrong += [name for name, value in environment.items() if not isinstance(value, str)]
    wrong += ["limits"] * (not isinstance(seconds, int | float | None) or not isinstance(output, int | None))
    wrong += ["limits"] * (not isinstance(kept, int | float))
    if wrong or type(body.get("attempt")) is not int:
        raise CallRefused(400, "invalid_input", f"The run's {', '.join(wrong) or 'attempt'} is missing or wrong.")
    return AgentTurn(
        **required,  # type: ignore[arg-type]  # checked above
        **texts,  # type: ignore[arg-type]
        attempt=body["attempt"],
        profile=str(body.get("profile") or "default"),
        allowed_tools=_names(body.get("allowed_tools")),
        allowed_once=_names(body.get("allowed_once")),
        options=body.get("options") or {},
        attachments=tuple(
            AgentAttachment(path=str(one["path"]), media_type=str(one["media_type"]))
            for one in body.get("attachments") or ()
        ),
        max_seconds=seconds,
        max_output=output,
        keep_seconds=kept,
        environment=environment,
        commands={str(name): str(text) for name, text in (body.get("commands") or {}).items()},
        mcp_servers=_servers(body.get("mcp_servers") or {}),
    )


def _servers(given: Mapping[str, Mapping[str, Any]]) -> tuple[AgentMcpServer, ...]:
    return tuple(
        AgentMcpServer(
            name=name,
            command=_names(about.get("command")),
            environment={str(each): str(value) for each, value in (about.get("environment") or {}).items()},
            path=str(about.get("path") or ""),
        )
        for name, about in given.items()
    )


def _names(given: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in given) if isinstance(given, list) else ()
