"""A question to a server without a client."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest
from tests.support.http_answers import served_by

from contextbase.errors import Forbidden, InvalidInput, Unavailable
from contextbase.servers.request import get


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Authorization']}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:  # quiet
            return

    with served_by(Handler) as port:
        yield f"http://127.0.0.1:{port}", asked


def test_an_answer_is_given_as_it_is_from_below_the_address() -> None:
    with answering(200, b'{"a": 1}') as (url, asked):
        assert get(f"{url}/base/", "cb_x", "/api/v1/me", name="a b") == {"a": 1}
    assert asked == ["/base/api/v1/me?name=a+b Bearer cb_x"]


def test_a_problem_is_raised_as_the_error_it_is() -> None:
    body = json.dumps({"code": "forbidden", "detail": "You may not."}).encode()
    with answering(403, body) as (url, _), pytest.raises(Forbidden, match="You may not"):
        get(url, "cb_x", "/")


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>"), (200, b"[]"), (502, b""), (301, b"")])
def test_an_answer_of_something_else_is_unavailable(status: int, body: bytes) -> None:
    with answering(status, body) as (url, _), pytest.raises(Unavailable, match="Is the URL right"):
        get(url, "cb_x", "/")


def test_silence_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        get("http://127.0.0.1:9", "cb_x", "/")


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a b", "http://x:port", "http://x:0", "x", "http://["])
def test_what_is_not_an_address_is_bad_input(url: str) -> None:
    with pytest.raises(InvalidInput):
        get(url, "cb_x", "/")


def test_what_is_not_a_token_is_not_sent() -> None:
    with pytest.raises(InvalidInput):
        get("http://127.0.0.1:9", "a\r\nb: c", "/")
