"""The client: what it refuses to send, and how it reads errors."""

import httpx
import pytest

from contextbase.errors import Conflict, ContextbaseError, InvalidInput, Unavailable
from contextbase.sdk import Client
from contextbase.wire.problem import Problem


def client_answering(response: httpx.Response) -> Client:
    client = Client("http://server", "cb_x")
    client._http = httpx.Client(base_url="http://server", transport=httpx.MockTransport(lambda _: response))
    return client


@pytest.mark.parametrize("url", ["", "server", "ftp://server", "http://", "http://[", "http://a:b", "http://a:70000"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="not the URL of a server"):
        Client(url, "cb_x")


@pytest.mark.parametrize("token", ["", "tökén", "a b", "a\r\nX: y"])
def test_a_token_that_cannot_be_one_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client("http://server", token)
    assert not token or token not in caught.value.message


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "é", "a\n"])
def test_a_name_that_would_lead_to_another_route_is_not_sent(name: str) -> None:
    with Client("http://127.0.0.1:9", "cb_x") as client, pytest.raises(InvalidInput, match="name or id"):
        client.delete_project(name)


def test_a_problem_becomes_the_error_it_stands_for() -> None:
    problem = Problem(
        title="Conflict", status=409, code="conflict", detail="Taken.", trace_id="t", details={"code": 1, "trace_id": 2}
    )
    with (
        client_answering(httpx.Response(409, text=problem.model_dump_json())) as client,
        pytest.raises(Conflict, match="Taken") as caught,
    ):
        client.me()
    assert caught.value.details == {"code": 1, "trace_id": "t"}


def test_a_code_of_a_newer_server_is_kept() -> None:
    problem = Problem(title="?", status=418, code="teapot", detail="I am a teapot.", trace_id="t")
    with (
        client_answering(httpx.Response(418, text=problem.model_dump_json())) as client,
        pytest.raises(ContextbaseError) as caught,
    ):
        client.me()
    assert caught.value.code == "teapot"


@pytest.mark.parametrize("status", [200, 502])
def test_an_answer_of_somebody_else_is_unavailable(status: int) -> None:
    with client_answering(httpx.Response(status, text="<html>")) as client, pytest.raises(Unavailable):
        client.version()


def test_nobody_answering_is_unavailable_with_what_to_do() -> None:
    with Client("http://127.0.0.1:9", "cb_x") as client, pytest.raises(Unavailable, match="contextbase up"):
        client.version()
