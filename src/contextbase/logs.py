"""Log lines: one trace id per request in every line, as text for people or JSON for machines."""

import json
import logging
import secrets
import sys
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import MemoryHandler
from typing import Final, Literal

__all__ = ["configure_logs", "new_trace_id", "trace_id"]

trace_id: ContextVar[str] = ContextVar("trace_id", default="")

_as_json: Final = json.JSONEncoder(default=str).encode

# What every LogRecord has; anything else was passed as `extra` and belongs in the line.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def new_trace_id() -> str:
    """128 random bits in hex, as W3C trace context has them."""
    return secrets.token_hex(16)


def configure_logs(
    *,
    level: str,
    format: Literal["auto", "text", "json"],  # noqa: A002 - the setting's name
    held_back: bool = False,
) -> Callable[[], None]:
    """Send all log lines to standard error. `held_back`: only when the function is called that is given back, on the
    first warning, or when the process ends."""
    as_json = format == "json" or (format == "auto" and not sys.stderr.isatty())
    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(_JsonLines() if as_json else _TextLines())
    handler = MemoryHandler(1000, flushLevel=logging.WARNING, target=stream) if held_back else stream
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("uvicorn.access", "uvicorn.error", "httpx", "httpcore"):
        # Their lines hold full URLs; ours hold the path alone.
        logging.getLogger(chatty).setLevel(logging.WARNING)

    def let_go() -> None:
        if handler is not stream:
            logging.getLogger().addHandler(stream)
            logging.getLogger().removeHandler(handler)
            handler.close()  # writes what it holds

    return let_go


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "trace_id": trace_id.get(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _as_json(line)


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        trace = f" [{trace_id.get()[:8]}]" if trace_id.get() else ""
        extras = "".join(f" {name}={_on_one_line(value)}" for name, value in _extras(record).items())
        text = f"{time} {record.levelname.lower():7} {record.getMessage()}{extras}{trace}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _on_one_line(value: object) -> str:
    """A path in a request may hold newlines: they must not look like further log lines."""
    text = str(value)
    return text if text.isprintable() else ascii(text)
