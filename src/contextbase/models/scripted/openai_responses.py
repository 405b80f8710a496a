"""Answers as OpenAI's Responses API writes them."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

from contextbase.models.scripted.rendering import Rendered, ScriptedAnswer, event, text_pieces
from contextbase.models.scripted.script import AnswerText, BreakOff, Pause
from contextbase.models.scripted.tool_calls import TOOL_SEARCH, OfferedCall

__all__ = ["responses_document", "responses_events"]


def responses_document(answer: ScriptedAnswer) -> dict[str, Any]:
    parts = [part for part in answer.parts if isinstance(part, AnswerText | OfferedCall)]
    output = [_item(answer, at, part) for at, part in enumerate(parts)]
    return _response(answer) | {"status": "completed", "output": output, "usage": _usage(answer)}


def responses_events(answer: ScriptedAnswer) -> Iterator[Rendered]:
    numbers = itertools.count()

    def numbered(document: dict[str, Any]) -> bytes:
        return event(document | {"sequence_number": next(numbers)})

    yield numbered({"type": "response.created", "response": _response(answer)})
    index = 0
    for part in answer.parts:
        if isinstance(part, Pause | BreakOff):
            yield part
            continue
        item = _item(answer, index, part)
        yield numbered({"type": "response.output_item.added", "output_index": index, "item": item | _unfinished(item)})
        if isinstance(part, AnswerText):
            for document in _text_events(item, part, index):
                yield numbered(document)
        yield numbered({"type": "response.output_item.done", "output_index": index, "item": item})
        index += 1
    yield numbered({"type": "response.completed", "response": responses_document(answer)})


def _text_events(item: dict[str, Any], part: AnswerText, index: int) -> Iterator[dict[str, Any]]:
    if part.is_reasoning:
        place: dict[str, Any] = {"item_id": item["id"], "output_index": index, "summary_index": 0}
        empty: dict[str, Any] = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **place, "part": empty}
        for piece in text_pieces(part.text):
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": part.text}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": empty | {"text": part.text}}
        return
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    yield {"type": "response.content_part.added", **place, "part": empty}
    for piece in text_pieces(part.text):
        yield {"type": "response.output_text.delta", **place, "delta": piece}
    yield {"type": "response.output_text.done", **place, "text": part.text}
    yield {"type": "response.content_part.done", **place, "part": empty | {"text": part.text}}


def _item(answer: ScriptedAnswer, index: int, part: AnswerText | OfferedCall) -> dict[str, Any]:
    if isinstance(part, AnswerText):
        if part.is_reasoning:
            summary = [{"type": "summary_text", "text": part.text}]
            return {"type": "reasoning", "id": f"rs_{answer.id}_{index}", "summary": summary}
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        head = {"type": "message", "id": f"msg_{answer.id}_{index}", "role": "assistant", "status": "completed"}
        return head | {"content": content}
    call_id = f"call_{answer.id}_{index}"
    if part.name == TOOL_SEARCH:
        search = {"type": "tool_search_call", "id": f"tsc_{answer.id}_{index}", "call_id": call_id}
        return search | {"execution": "client", "arguments": part.input, "status": "completed"}
    if part.is_freeform:
        kind, given = "custom_tool_call", {"input": str(part.input)}
    else:
        kind, given = "function_call", {"arguments": json.dumps(part.input)}
    item = {"type": kind, "id": f"fc_{answer.id}_{index}", "call_id": call_id, "name": part.name, **given}
    return item | {"status": "completed"} | ({"namespace": part.namespace} if part.namespace else {})


def _unfinished(item: dict[str, Any]) -> dict[str, Any]:
    match item["type"]:
        case "message":
            return {"status": "in_progress", "content": []}
        case "reasoning":
            return {"summary": []}
        case _:
            return {"status": "in_progress"}


def _response(answer: ScriptedAnswer) -> dict[str, Any]:
    head = {"id": f"resp_{answer.id}", "object": "response", "created_at": 1, "model": answer.model}
    return head | {"status": "in_progress", "output": []}


def _usage(answer: ScriptedAnswer) -> dict[str, Any]:
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
