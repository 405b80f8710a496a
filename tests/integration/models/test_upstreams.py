"""Whose model service answers, which models may be asked for, and where keys are."""

import logging
from dataclasses import replace

import pytest
from tests.support.model_service import ModelService, message_answer
from tests.support.model_world import model_world
from tests.support.scripted_model import listening

from contextbase.db.database import Database
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.identity.model import Action, PrincipalKind
from contextbase.models.catalog import NewUpstream
from contextbase.models.model import AllowedModel, ModelProtocol, ModelRole, UpstreamScope

BODY = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [], "tools": []}
ANTHROPIC = ModelProtocol.ANTHROPIC
KEY = "sk-very-secret-0123456789"


async def test_without_any_service_the_scripted_model_answers(embedded_database: Database) -> None:
    async with model_world(embedded_database) as world, world.client(world.context()) as client:
        answer = await client.post("/v1/messages", json=BODY | {"model": "whatever"})
        assert answer.json()["role"] == "assistant"
        row = await world.only_usage()
        assert (row["upstream"], row["cost"]) == ("scripted", 0)


async def test_the_users_service_comes_before_the_projects_and_that_before_the_platforms(
    embedded_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = {scope: ModelService(message_answer(number)) for number, scope in enumerate(UpstreamScope)}
    async with (
        listening(services[UpstreamScope.USER]) as user,
        listening(services[UpstreamScope.PROJECT]) as project,
        listening(services[UpstreamScope.PLATFORM]) as platform,
        model_world(embedded_database) as world,
        world.client(world.context()) as client,
    ):
        urls = {UpstreamScope.PLATFORM: platform, UpstreamScope.PROJECT: project, UpstreamScope.USER: user}
        # The user's is at a loopback address, which is refused but for this test.
        monkeypatch.setattr("contextbase.models.addresses.AddressChecker._is_allowed", lambda *_: True)
        for scope, url in urls.items():
            await world.catalog.add_upstream(
                world.owner,
                NewUpstream(
                    name=scope,
                    protocol=ANTHROPIC,
                    base_url=url,
                    key=KEY,
                    scope=scope,
                    project_id=world.project_id if scope is UpstreamScope.PROJECT else None,
                ),
            )
            assert (await client.post("/v1/messages", json=BODY)).status_code == 200
            assert len(services[scope].requests) == 1, scope
            assert services[scope].requests[0][1]["x-api-key"] == KEY


async def test_a_key_is_nowhere_to_be_read(embedded_database: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    new = NewUpstream(name="a", protocol=ANTHROPIC, base_url="http://127.0.0.1:1", key=KEY)
    assert KEY not in repr(new)
    async with model_world(embedded_database) as world, world.client(world.context()) as client:
        added = await world.catalog.add_upstream(world.owner, new)
        answer = await client.post("/v1/messages", json=BODY)
        assert answer.status_code == 502
        assert KEY not in answer.text + repr(added) + caplog.text
        [row] = await world.rows("SELECT * FROM model_upstreams")
        assert KEY.encode() not in row["sealed_key"]
        assert KEY not in str(await world.rows("SELECT summary, details FROM audit"))


async def test_a_key_sealed_with_another_secret_is_not_opened(embedded_database: Database) -> None:
    async with model_world(embedded_database) as world:
        await world.catalog.add_upstream(
            world.owner, NewUpstream(name="a", protocol=ANTHROPIC, base_url="http://127.0.0.1:1", key=KEY)
        )
        await world.rows("DELETE FROM tokens")
        async with model_world(embedded_database, secret=b"t" * 32) as other, other.client(other.context()) as client:
            assert (await client.post("/v1/messages", json=BODY)).status_code == 502


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.1.2.3", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]"]
)
async def test_a_users_service_cannot_be_inside(embedded_database: Database, host: str) -> None:
    service = ModelService(message_answer())
    async with listening(service) as url, model_world(embedded_database) as world:
        port = url.rpartition(":")[2]
        ann = await world.caller(PrincipalKind.USER, "ann", Action.READ, Action.WRITE)
        new = NewUpstream(
            name="mine", protocol=ANTHROPIC, base_url=f"http://{host}:{port}", key=KEY, scope=UpstreamScope.USER
        )
        await world.catalog.add_upstream(ann, new)
        async with world.client(replace(world.context(), owner=ann.principal)) as client:
            assert (await client.post("/v1/messages", json=BODY)).status_code == 502
        assert service.requests == []


async def test_only_listed_models_are_asked_for_once_any_is_listed(embedded_database: Database) -> None:
    service = ModelService(message_answer(1, output_tokens=1000), message_answer(2, output_tokens=1000))
    async with listening(service) as url, model_world(embedded_database) as world:
        await world.catalog.add_upstream(world.owner, NewUpstream(name="a", protocol=ANTHROPIC, base_url=url))
        async with world.client(world.context()) as client:
            assert (await client.post("/v1/messages", json=BODY | {"model": "other"})).status_code == 404
            await world.catalog.allow_model(
                world.owner,
                AllowedModel(name="other", protocol=ANTHROPIC, role=ModelRole.MAIN, prices=(0, 2_000_000, 0, 0)),
            )
            assert (await client.post("/v1/messages", json=BODY | {"model": "other"})).status_code == 200
            refused = await client.post("/v1/messages", json=BODY)
            assert (refused.status_code, refused.json()["error"]["type"]) == (404, "not_found_error")
            listed = (await client.get("/v1/models", headers={"anthropic-version": "1"})).json()
            assert [model["id"] for model in listed["data"]] == ["other"]
        row = await world.only_usage()
        assert row["cost"] == 2000


async def test_who_may_add_and_remove_services(embedded_database: Database) -> None:
    async with model_world(embedded_database) as world:
        ann = await world.caller(PrincipalKind.USER, "ann", Action.READ, Action.WRITE)
        robot = await world.caller(PrincipalKind.AGENT, "robot", Action.READ, Action.WRITE)
        for caller, scope in [(ann, UpstreamScope.PLATFORM), (robot, UpstreamScope.USER)]:
            with pytest.raises(Forbidden):
                await world.catalog.add_upstream(
                    caller, NewUpstream(name="x", protocol=ANTHROPIC, base_url="https://a.example", scope=scope)
                )
        mine = NewUpstream(name="mine", protocol=ANTHROPIC, base_url="https://a.example", scope=UpstreamScope.USER)
        assert not (await world.catalog.add_upstream(ann, mine)).may_be_private
        with pytest.raises(Conflict):
            await world.catalog.add_upstream(ann, mine)
        assert [each.name for each in await world.catalog.upstreams(ann)] == ["mine"]
        assert await world.catalog.upstreams(robot) == []
        with pytest.raises(Forbidden):
            await world.catalog.remove_upstream(robot, "mine")
        await world.catalog.remove_upstream(ann, "mine")
        assert await world.catalog.upstreams(world.owner) == []


@pytest.mark.parametrize(
    "url", ["ftp://a.example", "https://", "https://user:pw@a.example", "https://a.example/?k=1", "http://a:b"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        NewUpstream(name="a", protocol=ANTHROPIC, base_url=url)


async def test_a_service_is_tested_without_cost(embedded_database: Database) -> None:
    service = ModelService((200, {}, [b"{}"]), (401, {}, [b"{}"]))
    async with listening(service) as url, model_world(embedded_database) as world:
        await world.catalog.add_upstream(world.owner, NewUpstream(name="a", protocol=ANTHROPIC, base_url=url, key=KEY))
        assert (await world.probe.test(world.owner, "a")).is_well
        assert not (await world.probe.test(world.owner, "a")).is_well
        assert [path for path, _, _ in service.requests] == ["/v1/models?", "/v1/models?"]
        with pytest.raises(NotFound):
            await world.probe.test(world.owner, "b")
