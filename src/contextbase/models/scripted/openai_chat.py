"""Answers as OpenAI's chat completions API writes them."""

import json
from collections.abc import Iterator
from typing import Any

from contextbase.models.scripted.rendering import Rendered, ScriptedAnswer, event, text_pieces
from contextbase.models.scripted.script import AnswerText, BreakOff, Pause

__all__ = ["chat_document", "chat_events"]


def chat_document(answer: ScriptedAnswer) -> dict[str, Any]:
    said = [part.text for part in answer.parts if isinstance(part, AnswerText) and not part.is_reasoning]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(said)}
    if answer.calls:
        message["tool_calls"] = [_call(answer, at) for at in range(len(answer.calls))]
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    return _head(answer, "chat.completion") | {"choices": [choice], "usage": _usage(answer)}


def chat_events(answer: ScriptedAnswer) -> Iterator[Rendered]:
    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        document = _head(answer, "chat.completion.chunk") | {"choices": [choice], **more}
        return event(document, is_named=False)

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for part in answer.parts:
        if isinstance(part, Pause | BreakOff):
            yield part
        elif isinstance(part, AnswerText):
            field = "reasoning_content" if part.is_reasoning else "content"
            for piece in text_pieces(part.text):
                yield chunk({field: piece})
        else:
            yield chunk({"tool_calls": [_call(answer, calls)]})
            calls += 1
    yield chunk({}, _reason(answer), usage=_usage(answer))
    yield b"data: [DONE]\n\n"


def _call(answer: ScriptedAnswer, index: int) -> dict[str, Any]:
    call = answer.calls[index]
    function = {"name": call.name, "arguments": json.dumps(call.input)}
    return {"index": index, "id": f"call_{answer.id}_{index}", "type": "function", "function": function}


def _head(answer: ScriptedAnswer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": 1, "model": answer.model}


def _reason(answer: ScriptedAnswer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: ScriptedAnswer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
