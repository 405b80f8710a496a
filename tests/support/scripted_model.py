"""A model that says what a script says, in the three dialects that agent programs speak. One server, one script.

A step is a text, or a call of a tool: (tool, arguments). The model is at step n when n tools have answered. What it was
sent is kept, so that a test can look at what a program shows to its model."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ScriptedModel", "Step", "scripted_model"]

Step = str | tuple[str, dict[str, Any]]


@dataclass
class ScriptedModel:
    url: str
    steps: Sequence[Step]
    tool_name: Callable[[str], str]
    answers: list[str] = field(default_factory=list)  # of tools, as the model saw them; the last request's
    offered: set[str] = field(default_factory=set)  # tools

    def step(self, number: int) -> Step:
        return self.steps[number] if number < len(self.steps) else "Done."


@contextmanager
def scripted_model(steps: Sequence[Step], tool_name: Callable[[str], str]) -> Iterator[ScriptedModel]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.model = ScriptedModel(f"http://127.0.0.1:{server.server_port}", steps, tool_name)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.model  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [{"id": "fake", "object": "model"}], "models": []})

    def do_HEAD(self) -> None:
        self._json({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            self._anthropic(body)
        elif path.endswith("/responses"):
            self._responses(body)
        elif path.endswith("/chat/completions"):
            self._chat(body)
        elif path.endswith("/count_tokens"):
            self._json({"input_tokens": 10})
        else:
            self._json({"error": {"message": "not found"}}, 404)

    def _next(self, answers: list[str], offered: list[str]) -> tuple[str, str | None, dict[str, Any]]:
        """What the model says: text, or the name of a tool and its arguments."""
        model: ScriptedModel = self.server.model  # type: ignore[attr-defined]
        if not offered:  # a question of the program's own, such as for a title
            return "Title", None, {}
        model.offered |= set(offered)
        model.answers = answers
        step = model.step(len(answers))
        if isinstance(step, str):
            return step, None, {}
        return "", model.tool_name(step[0]), step[1]

    def _anthropic(self, body: dict[str, Any]) -> None:
        blocks = [
            block
            for message in body["messages"]
            if message["role"] == "user" and isinstance(message["content"], list)
            for block in message["content"]
            if block.get("type") == "tool_result"
        ]
        tools = [tool.get("name", "") for tool in body.get("tools") or []]
        text, tool, arguments = self._next([_text(block.get("content")) for block in blocks], tools)
        usage = {"input_tokens": 10, "output_tokens": 5}
        start = {
            "id": f"msg_{len(blocks)}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "stop_sequence": None,
        }
        call = {"type": "tool_use", "id": f"toolu_{len(blocks)}", "name": tool, "input": arguments}
        content = {"type": "text", "text": text} if tool is None else call
        reason = "end_turn" if tool is None else "tool_use"
        if not body.get("stream"):
            self._json(start | {"content": [content], "stop_reason": reason, "usage": usage})
            return
        delta = (
            {"type": "text_delta", "text": text}
            if tool is None
            else {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        )
        empty = {"type": "text", "text": ""} if tool is None else call | {"input": {}}
        self._events(
            [
                {"type": "message_start", "message": start | {"content": [], "stop_reason": None, "usage": usage}},
                {"type": "content_block_start", "index": 0, "content_block": empty},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
                {"type": "message_stop"},
            ]
        )

    def _responses(self, body: dict[str, Any]) -> None:
        given = body["input"] if isinstance(body["input"], list) else []
        answers = [_text(item.get("output")) for item in given if item.get("type") == "function_call_output"]
        tools = []
        for tool in body.get("tools") or []:
            inner = tool.get("tools") or [tool]  # a namespace holds its functions
            prefix = f"{tool['name']}." if tool.get("tools") else ""
            tools += [prefix + str(one.get("name") or one.get("type")) for one in inner]
        text, tool, arguments = self._next(answers, tools)
        if tool is None:
            part = {"type": "output_text", "text": text, "annotations": []}
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        else:
            namespace, _, name = tool.rpartition(".")
            item = {
                "type": "function_call",
                "id": f"fc_{len(answers)}",
                "call_id": f"call_{len(answers)}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            } | ({"namespace": namespace} if namespace else {})
        base = {"id": f"resp_{len(answers)}", "object": "response", "created_at": 1, "model": body.get("model")}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # type: ignore[dict-item]
        self._events(
            [
                {"type": "response.created", "response": base | {"status": "in_progress", "output": []}},
                {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress"}},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {
                    "type": "response.completed",
                    "response": base | {"status": "completed", "output": [item], "usage": usage},
                },
            ]
        )

    def _chat(self, body: dict[str, Any]) -> None:
        answers = [_text(message.get("content")) for message in body["messages"] if message["role"] == "tool"]
        tools = [tool["function"]["name"] for tool in body.get("tools") or []]
        text, tool, arguments = self._next(answers, tools)
        call = {
            "index": 0,
            "id": f"call_{len(answers)}",
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps(arguments)},
        }
        delta: dict[str, Any] = {"content": text} if tool is None else {"tool_calls": [call]}
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

        def chunk(part: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
            return base | {"choices": [{"index": 0, "delta": part, "finish_reason": reason}]}

        last = chunk({}, "stop" if tool is None else "tool_calls") | {"usage": usage}
        self._events([chunk({"role": "assistant", "content": ""}), chunk(delta), last], named=False, end="[DONE]")

    def _events(self, events: list[dict[str, Any]], *, named: bool = True, end: str = "") -> None:
        lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
        if end:
            lines.append(f"data: {end}\n\n")
        self._send("".join(lines).encode(), "text/event-stream", 200)

    def _json(self, answer: dict[str, Any], status: int = 200) -> None:
        self._send(json.dumps(answer).encode(), "application/json", status)

    def _send(self, body: bytes, kind: str, status: int) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("text", ""))
    return re.sub(r"\r", "", str(content or ""))
