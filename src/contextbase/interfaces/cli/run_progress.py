"""How a run of an agent is doing, as its session's events tell it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from contextbase.vocabulary import RunState

__all__ = ["RunProgress", "duration", "tokens", "tool_words"]

_STATES: Final = {
    RunState.QUEUED: "waits for a machine",
    RunState.CLAIMED: "starts",
    RunState.RESTORING: "gets its folder",
    RunState.LINKING: "starts its sandbox",
    RunState.PREPARING: "starts the agent",
    RunState.RUNNING: "works",
    RunState.WAITING_HUMAN: "asks you",
    RunState.SYNCING: "stores its work",
    RunState.EXPORTED: "stores its work",
    RunState.SUCCEEDED: "done",
    RunState.FAILED: "failed",
    RunState.CANCELED: "canceled",
}
_ENDED: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED})
_COUNTED: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_LONGEST: Final = 200
_MINUTE: Final = 60
_THOUSAND: Final = 1000
_UNNAMED_TOOL: Final = "other"
_WORKSPACE: Final = "/workspace/"  # all paths of an agent begin with it


@dataclass(kw_only=True)
class RunProgress:
    """Take every event of a run in order, of any kind."""

    state: RunState = RunState.QUEUED
    doing: str = ""  # the last tool, or the last line that was said
    error: str | None = None
    tokens: int = 0
    began: float | None = None  # by time.monotonic()
    ended: float | None = None
    line: str = ""  # the beginning of the one that is being said

    @property
    def is_ended(self) -> bool:
        return self.state in _ENDED

    @property
    def words(self) -> str:
        """The state as a person says it."""
        return _STATES[self.state]

    @property
    def seconds(self) -> float | None:
        return None if self.began is None else (self.ended or time.monotonic()) - self.began

    def take(self, kind: str, payload: Mapping[str, Any]) -> None:
        match kind:
            case "run.state":
                self._move(RunState(payload.get("state", self.state)), payload)
            case "message.delta" | "message.done":
                self._say(str(payload.get("text", "")), so_far=self.line if kind == "message.delta" else "")
            case "tool.start":
                self.doing, self.line = tool_words(payload), ""
            case "rate_limited":
                self.doing = f"the model service is busy; waits {duration(float(payload.get('retry_after') or 0))}"
            case "run.error":
                self.error = str(payload.get("message") or payload.get("code") or "")
            case "usage":
                self.tokens += sum(int(payload.get(name) or 0) for name in _COUNTED)
            case _:
                pass

    def _move(self, state: RunState, payload: Mapping[str, Any]) -> None:
        self.state = state
        if self.began is None and state is not RunState.QUEUED:
            self.began = time.monotonic()
        if state in _ENDED:
            self.ended = time.monotonic()
            self.error = str(payload["message"]) if state is RunState.FAILED and payload.get("message") else self.error

    def _say(self, text: str, *, so_far: str) -> None:
        lines = (so_far + text).splitlines()
        self.line = lines[-1][:_LONGEST] if lines and not text.endswith("\n") else ""
        self.doing = next((line[:_LONGEST] for line in reversed(lines) if line.strip()), self.doing)


def tool_words(payload: Mapping[str, Any]) -> str:
    """`bash  ls -1`: what an agent does, in a line."""
    name, title = str(payload.get("name", "")), " ".join(str(payload.get("title") or "").split())
    title = title.removeprefix(_WORKSPACE)
    if name == _UNNAMED_TOOL:
        name = str(payload.get("raw") or name)
    return f"{name}  {title}" if title and title != name else name


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`."""
    if seconds < 10:  # a tenth of a second is worth telling
        return f"{seconds:.1f} s"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // _MINUTE} min {int(seconds) % _MINUTE} s"


def tokens(number: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if number < _THOUSAND:
        return str(number)
    if number < _THOUSAND**2:
        return f"{number / _THOUSAND:.1f}k"
    return f"{number / _THOUSAND**2:.1f}M"
