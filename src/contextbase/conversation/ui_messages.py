"""Chunks of a UI message stream to the message that a client makes of them, as the AI SDK's reducer does it. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from contextbase.conversation.ui_stream import Chunk

__all__ = ["UIMessageBuilder", "built_message"]

Part = dict[str, Any]


class UIMessageBuilder:
    """One assistant message, as it grows."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {"id": "", "role": "assistant", "parts": []}
        self._open: dict[tuple[str, str], Part] = {}

    def apply(self, chunk: Chunk) -> None:
        kind = chunk["type"]
        if kind.startswith("data-"):
            self._put_data(chunk)
        elif (change := _CHANGES.get(kind)) is not None:
            change(self, chunk)

    @property
    def _parts(self) -> list[Part]:
        parts: list[Part] = self.message["parts"]
        return parts

    def start(self, chunk: Chunk) -> None:
        self.message["id"] = chunk.get("messageId", self.message["id"])
        self.add_metadata(chunk)

    def add_metadata(self, chunk: Chunk) -> None:
        if (added := chunk.get("messageMetadata")) is not None:
            self.message["metadata"] = {**self.message.get("metadata", {}), **added}

    def start_step(self, _: Chunk) -> None:
        self._parts.append({"type": "step-start"})

    def reset_step(self, _: Chunk) -> None:
        self._open.clear()
        del self._parts[self._step_start() :]

    def _step_start(self) -> int:
        starts = [at for at, part in enumerate(self._parts) if part["type"] == "step-start"]
        return starts[-1] + 1 if starts else 0

    def start_text(self, chunk: Chunk) -> None:
        kind = chunk["type"].removesuffix("-start")
        part: Part = {"type": kind, "text": "", "state": "streaming"}
        if kind == "reasoning":
            part["id"] = chunk["id"]
        self._open[kind, chunk["id"]] = part
        self._parts.append(part)

    def add_text(self, chunk: Chunk) -> None:
        self._open[chunk["type"].removesuffix("-delta"), chunk["id"]]["text"] += chunk["delta"]

    def end_text(self, chunk: Chunk) -> None:
        part = self._open.pop((chunk["type"].removesuffix("-end"), chunk["id"]))
        part["state"] = "done"
        if "providerMetadata" in chunk:
            part["providerMetadata"] = chunk["providerMetadata"]

    def start_tool(self, chunk: Chunk) -> None:
        kept = {name: value for name, value in chunk.items() if name not in {"type", "dynamic"}}
        self._parts.append({"type": "dynamic-tool", "state": "input-available", **kept})

    def end_tool(self, chunk: Chunk) -> None:
        part = next(part for part in reversed(self._parts) if part.get("toolCallId") == chunk["toolCallId"])
        part["state"] = chunk["type"].removeprefix("tool-")
        for name in ("output", "errorText", "toolMetadata"):
            if name in chunk:
                part[name] = chunk[name]

    def steer(self, chunk: Chunk) -> None:
        self._parts.append(dict(chunk))

    def _put_data(self, chunk: Chunk) -> None:
        same = (part for part in self._parts if (part["type"], part.get("id")) == (chunk["type"], chunk["id"]))
        if (part := next(same, None)) is not None:
            part["data"] = chunk["data"]
        else:
            self._parts.append(dict(chunk))


_CHANGES: Final[Mapping[str, Callable[[UIMessageBuilder, Chunk], None]]] = {
    "start": UIMessageBuilder.start,
    "message-metadata": UIMessageBuilder.add_metadata,
    "finish": UIMessageBuilder.add_metadata,
    "start-step": UIMessageBuilder.start_step,
    "reset-step": UIMessageBuilder.reset_step,
    "text-start": UIMessageBuilder.start_text,
    "text-delta": UIMessageBuilder.add_text,
    "text-end": UIMessageBuilder.end_text,
    "reasoning-start": UIMessageBuilder.start_text,
    "reasoning-delta": UIMessageBuilder.add_text,
    "reasoning-end": UIMessageBuilder.end_text,
    "tool-input-available": UIMessageBuilder.start_tool,
    "tool-output-available": UIMessageBuilder.end_tool,
    "tool-output-error": UIMessageBuilder.end_tool,
    "steering-message": UIMessageBuilder.steer,
}


def built_message(chunks: Iterable[Chunk]) -> dict[str, Any]:
    builder = UIMessageBuilder()
    for chunk in chunks:
        builder.apply(chunk)
    return builder.message
