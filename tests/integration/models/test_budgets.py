"""Budgets are reserved before a request and settled once after it, whoever asks at the same time."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from unittest.mock import ANY
from uuid import uuid4

import pytest
from tests.support.model_service import ModelService, message_answer
from tests.support.model_world import ModelWorld, model_world
from tests.support.scripted_model import listening

from contextbase.agent_vocabulary import UsageGroup
from contextbase.db.database import Database
from contextbase.errors import Forbidden, InvalidInput
from contextbase.identity.model import Action, PrincipalKind
from contextbase.models.dialects import GatewayError
from contextbase.models.http_transport import UpstreamAddress
from contextbase.models.model import ModelProtocol, TokenCounts, UsageRecord

BODY = {"model": "claude-haiku-4-5", "max_tokens": 1000, "messages": []}
DOLLAR = 1_000_000


def address(url: str) -> dict[ModelProtocol, UpstreamAddress]:
    anthropic = ModelProtocol.ANTHROPIC
    return {anthropic: UpstreamAddress(name="anthropic", protocol=anthropic, base_url=url, key="k")}


def record(number: str, cost: int) -> UsageRecord:
    return UsageRecord(
        id=uuid4(),
        upstream="u",
        upstream_request_id=number,
        model="m",
        status=200,
        counts=TokenCounts(input=1),
        cost=cost,
    )


async def spending(world: ModelWorld) -> dict[str, tuple[int, int]]:
    rows = await world.rows(
        "SELECT scope, sum(spent) AS spent, sum(reserved) AS held FROM model_spending GROUP BY scope"
    )
    return {row["scope"]: (row["spent"], row["held"]) for row in rows}


async def test_an_answer_is_logged_with_its_tokens_and_cost(embedded_database: Database) -> None:
    service = ModelService(
        message_answer(
            input_tokens=1000, output_tokens=200, cache_read_input_tokens=10_000, cache_creation_input_tokens=100
        )
    )
    async with listening(service) as url, model_world(embedded_database, address(url)) as world:
        context = world.context()
        async with world.client(context) as client:
            assert (await client.post("/v1/messages", json=BODY)).status_code == 200
        row = await world.only_usage()
        assert (row["run_id"], row["owner_id"], row["upstream"]) == (
            context.run_id,
            world.owner.principal.id,
            "anthropic",
        )
        assert (row["input_tokens"], row["output_tokens"]) == (1000, 200)
        assert (row["cache_read_tokens"], row["cache_write_tokens"]) == (10_000, 100)
        assert row["cost"] == 1000 + 200 * 5 + 10_000 // 10 + 125  # dollars for a million are micro-dollars for one
        assert not row["is_estimate"]
        assert (await world.ledger.usage_of_run(context.run_id)).cost == row["cost"]


async def test_an_exhausted_budget_ends_the_turn_in_the_clients_protocol(embedded_database: Database) -> None:
    service = ModelService(message_answer())
    async with listening(service) as url, model_world(embedded_database, address(url), run_budget=100) as world:
        async with world.client(world.context()) as client:
            answer = await client.post("/v1/messages", json=BODY)
        assert (answer.status_code, answer.json()["type"]) == (400, "error")
        assert answer.json()["error"]["type"] == "billing_error"
        assert service.requests == []
        assert await spending(world) == {}


async def test_a_failed_request_costs_nothing(embedded_database: Database) -> None:
    service = ModelService((529, {}, [b"{}"]))
    async with listening(service) as url, model_world(embedded_database, address(url), run_budget=DOLLAR) as world:
        async with world.client(world.context()) as client:
            assert (await client.post("/v1/messages", json=BODY)).status_code == 529
        assert await spending(world) == {"run": (0, 0)}
        assert await world.rows("SELECT * FROM model_reservations") == []


async def test_a_client_that_goes_away_is_settled_by_an_estimate(embedded_database: Database) -> None:
    start = b'data: {"type":"message_start","message":{"usage":{"input_tokens":50,"output_tokens":1}}}\n\n'
    service = ModelService((200, {"request-id": "r"}, [start, b"never"]))
    service.goes_on.clear()
    async with listening(service) as url, model_world(embedded_database, address(url), run_budget=DOLLAR) as world:
        async with world.client(world.context()) as client:
            async with client.stream("POST", "/v1/messages", json=BODY | {"stream": True}) as answer:
                await anext(answer.aiter_raw())
            await service.was_cut.wait()
        await world.gateway.close()
        row = await world.only_usage()
        assert (row["is_estimate"], row["input_tokens"]) == (True, 50)
        assert (await spending(world))["run"] == (row["cost"], 0)


async def test_requests_at_once_never_reserve_more_than_there_is(embedded_database: Database) -> None:
    async with model_world(embedded_database) as world:
        await world.catalog.set_project_budget(world.owner, world.project_id, 10)
        await world.catalog.set_user_budget(world.owner, "owner", 1000)

        async def reserved() -> bool:
            try:
                await world.ledger.reserve(world.context(), uuid4(), 3)
            except GatewayError:
                return False
            return True

        assert sum(await asyncio.gather(*(reserved() for _ in range(20)))) == 3
        assert await spending(world) == {"project": (0, 9), "user": (0, 9)}


@pytest.mark.parametrize("scope", ["user", "project", "run"])
async def test_each_budget_holds(embedded_database: Database, scope: str) -> None:
    async with model_world(embedded_database) as world:
        if scope == "user":
            await world.catalog.set_user_budget(world.owner, "owner", 5)
        if scope == "project":
            await world.catalog.set_project_budget(world.owner, world.project_id, 5)
        context = world.context(run_budget=5 if scope == "run" else None)
        first = uuid4()
        await world.ledger.reserve(context, first, 5)
        with pytest.raises(GatewayError):
            await world.ledger.reserve(context, uuid4(), 1)
        await world.ledger.settle(context, first, record("a", 4))
        await world.ledger.reserve(context, uuid4(), 1)
        with pytest.raises(GatewayError):
            await world.ledger.reserve(context, uuid4(), 1)


async def test_a_request_is_settled_once(embedded_database: Database) -> None:
    async with model_world(embedded_database, run_budget=100) as world:
        context, request_id = world.context(), uuid4()
        await world.ledger.reserve(context, request_id, 50)
        for _ in range(2):
            await world.ledger.settle(context, request_id, record("same", 7))
        assert await spending(world) == {"run": (7, 0), "user": (7, 0), "project": (7, 0)}
        assert len(await world.rows("SELECT * FROM usage_logs")) == 1


async def test_what_a_dead_server_set_aside_comes_back(embedded_database: Database) -> None:
    async with model_world(embedded_database, run_budget=100) as world:
        context, old, new = world.context(), uuid4(), uuid4()
        await world.ledger.reserve(context, old, 50)
        await world.rows("UPDATE model_reservations SET created_at = created_at - interval '25 hours'")
        await world.ledger.reserve(context, new, 20)
        await world.ledger.release_stale()
        assert await spending(world) == {"run": (0, 20)}


async def test_usage_adds_up_by_person_project_model_and_day(embedded_database: Database) -> None:
    async with model_world(embedded_database) as world:
        for number, cost in (("a", 30), ("b", 12)):
            await world.ledger.settle(world.context(), uuid4(), record(number, cost))
        day = datetime.now(UTC).date()
        await world.rows(
            "INSERT INTO usage_logs SELECT gen_random_uuid(), upstream, 'old', session_id, run_id, attempt, owner_id, "
            "project_id, 'another', status, 5, 0, 0, 0, false, 7, now() - interval '400 days' FROM usage_logs LIMIT 1"
        )

        async def rows(group: UsageGroup, since: date | None = None) -> list[tuple[str, int, int, int]]:
            found = await world.catalog.usage(world.owner, group, since=since, until=day + timedelta(days=1), limit=9)
            return [(each.subject, each.requests, each.counts.input, each.cost) for each in found]

        assert await rows(UsageGroup.PERSON) == [("user:owner", 2, 2, 42)]
        assert await rows(UsageGroup.PROJECT) == [(ANY, 2, 2, 42)]
        long_ago = day - timedelta(days=800)
        assert await rows(UsageGroup.MODEL, long_ago) == [("m", 2, 2, 42), ("another", 1, 5, 7)]
        assert [cost for *_, cost in await rows(UsageGroup.DAY, long_ago)] == [42, 7]
        with pytest.raises(InvalidInput):
            await world.catalog.usage(world.owner, UsageGroup.DAY, since=day + timedelta(days=3), limit=9)
        reader = await world.caller(PrincipalKind.USER, "reader", Action.READ)
        with pytest.raises(Forbidden):
            await world.catalog.usage(reader, UsageGroup.PERSON, limit=9)
