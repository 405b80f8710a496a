"""Answers as Anthropic's Messages API writes them."""

import json
from collections.abc import Iterator
from typing import Any

from contextbase.models.scripted.rendering import Rendered, ResolvedPart, ScriptedAnswer, event, text_pieces
from contextbase.models.scripted.script import AnswerText, BreakOff, Pause

__all__ = ["messages_document", "messages_events"]


def messages_document(answer: ScriptedAnswer) -> dict[str, Any]:
    content = [_block(answer, at, part) for at, part in _blocks(answer)]
    return _start(answer) | {"content": content, "stop_reason": _reason(answer), "usage": _usage(answer)}


def messages_events(answer: ScriptedAnswer) -> Iterator[Rendered]:
    first = _start(answer) | {"content": [], "stop_reason": None, "usage": _usage(answer) | {"output_tokens": 1}}
    yield event({"type": "message_start", "message": first})
    index = 0
    for part in answer.parts:
        if isinstance(part, Pause | BreakOff):
            yield part
            continue
        block = _block(answer, index, part)
        if block["type"] == "tool_use":
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            empty = block | {"input": {}}
        elif block["type"] == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in text_pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            empty = {"type": "thinking", "thinking": "", "signature": ""}
        else:
            deltas = [{"type": "text_delta", "text": piece} for piece in text_pieces(block["text"])]
            empty = {"type": "text", "text": ""}
        yield event({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})
        index += 1
    ending = {"stop_reason": _reason(answer), "stop_sequence": None}
    yield event({"type": "message_delta", "delta": ending, "usage": {"output_tokens": answer.output_tokens}})
    yield event({"type": "message_stop"})


def _start(answer: ScriptedAnswer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_sequence": None,
    }


def _blocks(answer: ScriptedAnswer) -> Iterator[tuple[int, ResolvedPart]]:
    return enumerate(part for part in answer.parts if not isinstance(part, Pause | BreakOff))


def _block(answer: ScriptedAnswer, index: int, part: ResolvedPart) -> dict[str, Any]:
    if isinstance(part, AnswerText):
        if part.is_reasoning:
            return {"type": "thinking", "thinking": part.text, "signature": "c2NyaXB0ZWQ="}
        return {"type": "text", "text": part.text}
    assert not isinstance(part, Pause | BreakOff)  # noqa: S101 - for the type checker
    return {"type": "tool_use", "id": f"toolu_{answer.id}_{index}", "name": part.name, "input": part.input}


def _reason(answer: ScriptedAnswer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _usage(answer: ScriptedAnswer) -> dict[str, int]:
    return {
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": answer.output_tokens,
    }
