"""The gateway between a client and a model service, both on real sockets."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from tests.support.model_service import ModelService
from tests.support.scripted_model import listening, model_context, script, scripted_gateway

from contextbase.models.gateway import ModelGateway, WaitLimits
from contextbase.models.http_transport import HttpTransport, UpstreamAddress, upstream_client
from contextbase.models.memory import MemoryLedger
from contextbase.models.model import ModelContext, ModelProtocol
from contextbase.models.scripted import ScriptedModel
from contextbase.models.upstreams import ChosenUpstream, FixedUpstreams

KEY = "sk-real-key-of-the-server"


@asynccontextmanager
async def gateway_to(
    service: ModelService, *, context: ModelContext | None = None, has_run: bool = True
) -> AsyncIterator[httpx.AsyncClient]:
    run = context or model_context(main_model="m-large", small_model="m-small")
    async with listening(service) as upstream, upstream_client(idle_seconds=60) as client:
        chosen = {
            protocol: ChosenUpstream(
                name="test",
                transport=HttpTransport(
                    client, UpstreamAddress(name="test", protocol=protocol, base_url=upstream, key=KEY)
                ),
            )
            for protocol in ModelProtocol
        }
        fallback = ChosenUpstream(name="scripted", transport=ScriptedModel())
        gateway = ModelGateway(
            upstreams=FixedUpstreams(chosen, fallback),
            ledger=MemoryLedger(),
            waits=WaitLimits(one_seconds=5, all_seconds=6),
        )
        async with (
            listening(gateway, {"current": lambda: run if has_run else None}) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as outside,
        ):
            yield outside


BODY = b'{ "model":"m-large",  "max_tokens": 5, "messages":[{"role":"user","content":"h\\u00e4"}],"stream":true}'


async def test_a_body_passes_byte_for_byte_and_the_servers_key_replaces_the_clients() -> None:
    service = ModelService()
    service.answers = [(200, {"request-id": "req_1", "set-cookie": "a=b", "anthropic-ratelimit-x": "9"}, [b"{}"])]
    async with gateway_to(service) as client:
        answer = await client.post(
            "/v1/messages?beta=true",
            content=BODY,
            headers={
                "x-api-key": "dummy",
                "authorization": "Bearer dummy",
                "anthropic-beta": "one,two",
                "anthropic-version": "2023-06-01",
                "cookie": "x=y",
            },
        )
    [(path, headers, body)] = service.requests
    assert body == BODY
    assert path == "/v1/messages?beta=true"
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-beta"] == "one,two"
    assert "dummy" not in str(headers)
    assert "cookie" not in headers
    assert answer.headers["request-id"] == "req_1"
    assert answer.headers["anthropic-ratelimit-x"] == "9"
    assert "set-cookie" not in answer.headers


async def test_openai_requests_carry_the_key_as_openai_wants_it() -> None:
    service = ModelService()
    service.answers = [(200, {"x-request-id": "req_2"}, [b"{}"])]
    async with gateway_to(service) as client:
        for path in ("/v1/responses", "/v1/chat/completions"):
            await client.post(path, content=b'{"model":"m-large"}', headers={"authorization": "Bearer dummy"})
    assert [path for path, _, _ in service.requests] == ["/v1/responses?", "/v1/chat/completions?"]
    assert {headers["authorization"] for _, headers, _ in service.requests} == {f"Bearer {KEY}"}


async def test_each_piece_of_an_answer_passes_as_it_comes() -> None:
    service = ModelService()
    service.answers = [(200, {"content-type": "text/event-stream"}, [b"data: 1\n\n", b"data: 2\n\n"])]
    service.goes_on.clear()
    async with gateway_to(service) as client, client.stream("POST", "/v1/messages", content=BODY) as answer:
        pieces = answer.aiter_raw()
        assert await anext(pieces) == b"data: 1\n\n"  # the service has not sent the second yet
        service.goes_on.set()
        assert await anext(pieces) == b"data: 2\n\n"


async def test_a_client_that_goes_away_ends_the_call_upstream() -> None:
    service = ModelService()
    service.answers = [(200, {}, [b"data: 1\n\n", b"never"])]
    service.goes_on.clear()
    async with gateway_to(service) as client:
        async with client.stream("POST", "/v1/messages", content=BODY) as answer:
            await anext(answer.aiter_raw())
        await service.was_cut.wait()


async def test_a_busy_service_is_waited_for_visibly() -> None:
    service, waits = ModelService(), []

    async def on_wait(seconds: float) -> None:
        waits.append(seconds)

    service.answers = [(429, {"retry-after": "0.02"}, [b"{}"]), (200, {}, [b"done"])]
    async with gateway_to(service, context=model_context(on_wait=on_wait)) as client:
        answer = await client.post("/v1/messages", content=BODY)
    assert (answer.status_code, answer.text) == (200, "done")
    assert waits == [0.02]
    assert [body for _, _, body in service.requests] == [BODY, BODY]


@pytest.mark.parametrize("headers", [{"retry-after": "3600"}, {"retry-after": "0.1", "x-should-retry": "false"}])
async def test_a_service_that_is_busy_for_long_is_not_waited_for(headers: dict[str, str]) -> None:
    service = ModelService()
    service.answers = [(429, headers, [b"busy"])]
    async with gateway_to(service) as client:
        answer = await client.post("/v1/messages", content=BODY)
    assert (answer.status_code, answer.text) == (429, "busy")
    assert answer.headers["retry-after"] == headers["retry-after"]


@pytest.mark.parametrize(
    ("path", "is_anthropic"), [("/v1/messages", True), ("/v1/responses", False), ("/v1/chat/completions", False)]
)
async def test_a_service_that_is_down_is_told_in_the_clients_protocol(path: str, is_anthropic: bool) -> None:
    async with upstream_client(idle_seconds=5) as client:
        address = UpstreamAddress(name="gone", protocol=ModelProtocol.ANTHROPIC, base_url="http://127.0.0.1:1", key=KEY)
        down = ChosenUpstream(name="gone", transport=HttpTransport(client, address))
        gateway = ModelGateway(upstreams=FixedUpstreams({}, down), ledger=MemoryLedger())
        run = model_context()
        async with listening(gateway, {"current": lambda: run}) as url, httpx.AsyncClient(base_url=url) as outside:
            answer = await outside.post(path, content=BODY)
    assert answer.status_code == 502
    error = answer.json()["error"]
    assert ("gone" in error["message"], KEY in answer.text) == (True, False)
    assert (answer.json().get("type") == "error") == is_anthropic
    assert ("code" in error) != is_anthropic


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"no",
        b'{"messages":[]}',
        b'{"model":"a","model":"b"}',
        b'{"model":"a","mode\\u006c":"b"}',
        b'{"model":"a","stream":false,"stream":true}',
    ],
)
async def test_a_body_that_two_readers_could_read_differently_is_refused(body: bytes) -> None:
    service = ModelService()
    service.answers = [(200, {}, [b""])]
    async with gateway_to(service) as client:
        assert (await client.post("/v1/messages", content=body)).status_code == 400
    assert service.requests == []


async def test_without_a_run_nothing_is_asked() -> None:
    service = ModelService()
    async with gateway_to(service, has_run=False) as client:
        answer = await client.post("/v1/messages", content=BODY)
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "permission_error")


async def test_only_known_paths_are_forwarded() -> None:
    service = ModelService()
    async with gateway_to(service) as client:
        for method, path in [("POST", "/v1/files"), ("GET", "/v1/messages"), ("POST", "/v1/messages/batches")]:
            assert (await client.request(method, path)).status_code == 404
    assert service.requests == []


async def test_the_models_of_the_run_are_listed_as_each_protocol_does() -> None:
    service = ModelService()
    async with gateway_to(service) as client:
        openai = (await client.get("/v1/models")).json()
        anthropic = (await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})).json()
    assert [model["id"] for model in openai["data"]] == ["m-large", "m-small"]
    assert (openai["object"], anthropic["has_more"]) == ("list", False)


async def test_an_answer_that_breaks_off_is_left_without_its_end() -> None:
    gateway = scripted_gateway(ScriptedModel())
    run, plan = model_context(), script({"text": "a"}, {"cut": True})
    body = {"model": "m", "stream": True, "tools": [{"name": "T"}], "messages": [{"role": "user", "content": plan}]}
    async with listening(gateway, {"current": lambda: run}) as url, httpx.AsyncClient(base_url=url) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/v1/messages", content=json.dumps(body))
