"""Log lines: the trace id and what the caller added are in every one."""

import json
import logging
from collections.abc import Callable, Iterator

import pytest

from contextbase.logs import configure_logs, new_trace_id, trace_id

StandardError = Callable[[], str]


@pytest.fixture
def standard_error(capsys: pytest.CaptureFixture[str]) -> Iterator[StandardError]:
    """What was written to standard error; the logging set-up is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []  # pytest's own, which configure_logs would close
    yield lambda: capsys.readouterr().err
    root.handlers[:], root.level = handlers, level


@pytest.fixture
def current_trace_id() -> Iterator[str]:
    token = trace_id.set(new_trace_id())
    yield trace_id.get()
    trace_id.reset(token)


def test_a_json_line_carries_the_trace_id_and_the_extras(standard_error: StandardError, current_trace_id: str) -> None:
    configure_logs(level="info", format="json")
    logging.getLogger("contextbase.x").info("did %s", "it", extra={"path": "/a\nb", "status": 200})
    line = json.loads(standard_error())
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "contextbase.x",
        "message": "did it",
        "trace_id": current_trace_id,
        "path": "/a\nb",
        "status": 200,
    }


def test_an_exception_is_one_json_line(standard_error: StandardError) -> None:
    configure_logs(level="info", format="json")
    try:
        int("first\nsecond")
    except ValueError:
        logging.getLogger("contextbase.x").exception("it failed")
    [line] = standard_error().splitlines()
    assert "ValueError: invalid literal" in json.loads(line)["exception"]


def test_what_json_cannot_hold_is_written_as_text(standard_error: StandardError) -> None:
    configure_logs(level="info", format="json")
    logging.getLogger("contextbase.x").info("it", extra={"where": {1, 2}.__class__})
    assert json.loads(standard_error())["where"] == "<class 'set'>"


def test_a_text_line_ends_with_the_beginning_of_the_trace_id(
    standard_error: StandardError, current_trace_id: str
) -> None:
    configure_logs(level="info", format="text")
    logging.getLogger("contextbase.x").warning("did it", extra={"status": 200})
    assert standard_error().endswith(f"warning did it status=200 [{current_trace_id[:8]}]\n")


def test_a_request_cannot_forge_a_text_line(standard_error: StandardError) -> None:
    configure_logs(level="info", format="text")
    logging.getLogger("contextbase.x").info("request", extra={"path": "/\n12:00:00 error   all is lost\x1b[2J"})
    [line] = standard_error().splitlines()
    assert "\x1b" not in line


def test_lines_below_the_level_and_full_urls_of_libraries_are_left_out(standard_error: StandardError) -> None:
    configure_logs(level="info", format="auto")
    logging.getLogger("contextbase.x").debug("no")
    logging.getLogger("httpx").info("GET /login?token=cb_secret")
    logging.getLogger("uvicorn.access").info("GET /login?token=cb_secret")
    assert standard_error() == ""


def test_without_a_terminal_auto_is_json(standard_error: StandardError) -> None:
    configure_logs(level="info", format="auto")
    logging.getLogger("contextbase.x").info("it")
    assert json.loads(standard_error())["message"] == "it"


def test_trace_ids_are_128_bits_and_not_the_invalid_one() -> None:
    ids = {new_trace_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(bytes.fromhex(each)) == 16 for each in ids)
