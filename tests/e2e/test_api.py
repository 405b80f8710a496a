"""What the API does for people, programs and operators."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import MAX_BODY, Api, assert_problem, opened_api, url_of
from tests.support.postgres import database_copy

from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_project_is_made_shown_listed_and_deleted(api: Api) -> None:
    made = await api.client.post("/api/v1/projects", json={"name": "life", "description": "of a project"})
    assert made.status_code == 201
    shown = (await api.client.get("/api/v1/projects/life")).json()
    assert shown == made.json() | {"files": 0, "bytes": 0, "versions": 0, "stored_bytes": 0}
    assert (await api.client.get(f"/api/v1/projects/{shown['id']}")).json() == shown
    assert (await api.client.delete("/api/v1/projects/life")).json() == made.json()
    assert_problem(await api.client.get("/api/v1/projects/life"), 404, "not_found")
    assert_problem(await api.client.get(f"/api/v1/projects/{shown['id']}"), 404, "not_found")
    assert (await api.client.post("/api/v1/projects", json={"name": "life"})).status_code == 201


async def test_pages_of_projects_hold_each_once_by_name(api: Api) -> None:
    names = [f"page-{number}" for number in range(5)]
    for name in reversed(names):
        await api.client.post("/api/v1/projects", json={"name": name})
    seen, after = [], "page-"
    for _ in range(10):
        page = (await api.client.get("/api/v1/projects", params={"after": after, "limit": 2})).json()
        seen += [project["name"] for project in page["projects"] if project["name"].startswith("page-")]
        after = page["next_after"]
        if after is None or not after.startswith("page-"):
            break
    assert seen == names


async def test_projects_made_at_once_with_one_name_are_one_project(api: Api) -> None:
    answers = await asyncio.gather(*(api.client.post("/api/v1/projects", json={"name": "race"}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [201, *[409] * 7]


async def test_listed_tokens_have_no_secrets(api: Api) -> None:
    token = await api.token()
    text = (await api.client.get("/api/v1/tokens", params={"limit": 1000})).text
    assert token["id"] in text
    assert token["secret"] not in text
    assert "cb_" not in text


async def test_metrics_count_route_templates_and_never_raw_paths(api: Api) -> None:
    await api.client.get("/api/v1/projects/secret-project-name")
    await api.client.get("/random/secret-path")
    await api.client.request("SECRETMETHOD", "/api/v1/projects")
    metrics = (await api.client.get("/metrics")).text
    assert 'route="/api/v1/projects/{project}"' in metrics
    assert 'route="(none)"' in metrics
    assert "contextbase_info{" in metrics
    assert "secret" not in metrics.lower()


async def test_every_answer_has_the_security_headers(api: Api) -> None:
    for answer in (
        await api.client.get("/"),
        await api.client.get("/docs"),
        await api.stranger.get("/healthz"),
        await api.stranger.get("/nowhere"),
        await api.stranger.get("/broken"),
        await api.client.post("/api/v1/projects", content=b"x" * (MAX_BODY + 1)),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


async def test_the_openapi_document_is_3_1_and_whole(api: Api) -> None:
    document = (await api.client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1.")
    assert {"/api/v1/projects", "/api/v1/tokens/{token_id}", "/healthz"} <= set(document["paths"])
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    for operation in operations:
        for status in ("413", "500"):
            assert list(operation["responses"][status]["content"]) == ["application/problem+json"]
    assert {
        path for path, operation in document["paths"].items() if operation.get("get", {}).get("security") == []
    } == {
        "/healthz",
        "/readyz",
    }
    assert document["security"], "every other route wants a token"
    text = json.dumps(document)
    for reference in {part.split('"')[0] for part in text.split('"$ref": "')[1:]}:
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        assert target


async def test_the_reference_page_names_every_route_of_the_document(api: Api) -> None:
    page = (await api.client.get("/docs")).text
    assert all(path in page for path in (await api.client.get("/openapi.json")).json()["paths"])


async def test_without_the_database_it_is_healthy_but_not_ready(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with (
        database_copy(embedded_database_server, "template0") as address,
        opened_api(Settings(data=tmp_path, database_url=url_of(address))) as api,
    ):
        await api.services.database.close()
        assert (await api.stranger.get("/healthz")).status_code == 200
        ready = await api.stranger.get("/readyz")
        assert (ready.status_code, ready.json()) == (
            503,
            {"status": "not_ready", "database": "database_unavailable", "blobs": "ok"},
        )
        assert_problem(await api.client.get("/api/v1/projects"), 503, "database_unavailable")


async def test_without_the_bucket_it_is_healthy_but_not_ready(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with database_copy(embedded_database_server, "template0") as address:
        settings = Settings(
            data=tmp_path,
            database_url=url_of(address),
            blobs="s3://bucket/prefix",
            s3_endpoint="http://127.0.0.1:9",
            s3_access_key_id="key",
            s3_secret_access_key="secret",
        )
        async with opened_api(settings) as api:
            ready = await api.stranger.get("/readyz", timeout=60)
            assert (ready.status_code, ready.json()) == (
                503,
                {"status": "not_ready", "database": "ok", "blobs": "blob_store_unavailable"},
            )
            assert (await api.stranger.get("/healthz")).status_code == 200


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(1200):
        if await condition():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it did not come true")


async def test_with_a_database_that_takes_no_writes_it_is_not_ready(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with (
        database_copy(embedded_database_server, "template0") as address,
        opened_api(Settings(data=tmp_path, database_url=url_of(address))) as api,
    ):
        assert (await api.stranger.get("/readyz")).status_code == 200

        async def set_read_only(value: str) -> None:
            """For the connections to come; those there are end."""
            async with api.services.database.connection() as connection:
                name = await connection.fetchval("SELECT current_database()")
                await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
                others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> $2"
                await connection.fetch(others, name, connection.get_server_pid())
            await api.services.database._pool.expire_connections()

        async def has(status: int) -> bool:
            reads = (await api.client.get("/api/v1/projects")).status_code == 200
            return reads and (await api.stranger.get("/readyz")).status_code == status

        await set_read_only("on")
        await until(lambda: has(503))
        assert (await api.stranger.get("/readyz")).json()["blobs"] == "ok"
        assert_problem(
            await api.client.post("/api/v1/projects", json={"name": "unwritten"}), 503, "database_unavailable"
        )
        async with api.services.database.connection() as connection:
            await connection.execute("SET default_transaction_read_only = off")
            name = await connection.fetchval("SELECT current_database()")
            await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await api.services.database._pool.expire_connections()
        await until(lambda: has(200))


async def test_with_a_blob_store_that_takes_no_writes_it_is_not_ready(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with (
        database_copy(embedded_database_server, "template0") as address,
        opened_api(Settings(data=tmp_path, database_url=url_of(address))) as api,
    ):
        assert (await api.stranger.get("/readyz")).status_code == 200
        objects = tmp_path / "blobs" / "objects"
        assert not any(path.is_file() for path in objects.rglob("*")), "what it writes to see, it removes"
        objects.rename(tmp_path / "blobs" / "away")
        objects.write_bytes(b"")  # not a folder any more: also root cannot write there

        async def is_not_ready() -> bool:
            return (await api.stranger.get("/readyz")).status_code == 503

        await until(is_not_ready)
        ready = (await api.stranger.get("/readyz")).json()
        assert ready == {"status": "not_ready", "database": "ok", "blobs": "machine_problem"}
