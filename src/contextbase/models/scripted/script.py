"""Scripts: what the model is to say and do, written in a message as a fenced block named `script`."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["AnswerText", "BreakOff", "CallTool", "Fault", "Pause", "ScriptPart", "ScriptTurn", "parse_script"]

_BLOCK: Final = re.compile(r"```script[ \t]*\n(.*?)```", re.DOTALL)
_LONGEST_PAUSE: Final = 3600.0


@dataclass(frozen=True, slots=True)
class AnswerText:
    text: str
    is_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class CallTool:
    name: str  # canonical, or exactly as the program offers it
    input: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The answer stops here without an end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """An error in place of an answer; with `once`, the same request is answered when it comes again."""

    status: int
    kind: str
    message: str
    retry_after: float | None = None
    once: bool = False


ScriptPart = AnswerText | CallTool | Pause | BreakOff


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptTurn:
    """One answer of the model. A turn with tool calls is followed by the next when the tools have answered."""

    parts: tuple[ScriptPart, ...] = ()
    faults: tuple[Fault, ...] = ()  # come first, each time the turn is asked for

    @property
    def calls(self) -> list[CallTool]:
        return [part for part in self.parts if isinstance(part, CallTool)]


def parse_script(message: str) -> list[ScriptTurn] | None:
    """The turns of the last script in a message; None if it has none, or none that can be read."""
    blocks = _BLOCK.findall(message)
    if not blocks:
        return None
    try:
        return _turns(json.loads(blocks[-1]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"The script cannot be read ({type(error).__name__}: {str(error)[:200]})."
        return [ScriptTurn(parts=(AnswerText(problem),))]


def _turns(steps: Iterable[dict[str, Any]]) -> list[ScriptTurn]:
    turns: list[ScriptTurn] = []
    parts: list[ScriptPart] = []
    faults: list[Fault] = []
    for step in steps:
        if "error" in step or "rate_limit" in step:
            faults.append(_fault(step))
            continue
        parts += _parts(step)
        if "tool" in step or "tools" in step or "cut" in step:
            turns.append(ScriptTurn(parts=tuple(parts), faults=tuple(faults)))
            parts, faults = [], []
    if parts or faults:
        turns.append(ScriptTurn(parts=tuple(parts), faults=tuple(faults)))
    return turns


def _parts(step: dict[str, Any]) -> list[ScriptPart]:
    if "text" in step:
        return [AnswerText(str(step["text"]))]
    if "reasoning" in step:
        return [AnswerText(str(step["reasoning"]), is_reasoning=True)]
    if "pause" in step:
        return [Pause(min(max(float(step["pause"]), 0.0), _LONGEST_PAUSE))]
    if "tool" in step:
        return [CallTool(str(step["tool"]), step.get("input", {}))]
    if "tools" in step:
        return [CallTool(str(call["tool"]), call.get("input", {})) for call in step["tools"]]
    if "cut" in step:
        return [BreakOff()]
    raise ValueError(f"a step is text, reasoning, pause, tool, tools, error, rate_limit or cut, not {sorted(step)}")


def _fault(step: dict[str, Any]) -> Fault:
    if "rate_limit" in step:
        message = "The scripted model is busy, as its script says."
        return Fault(
            status=429, kind="rate_limit_error", message=message, retry_after=float(step["rate_limit"]), once=True
        )
    error = step["error"]
    return Fault(
        status=int(error.get("status", 500)),
        kind=str(error.get("type", "api_error")),
        message=str(error.get("message", "The scripted model fails, as its script says.")),
        once=bool(error.get("once", False)),
    )
