"""What the API answers when something is wrong: with the request, its size, or the server."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.api import BROKEN_ROUTES, MAX_BODY, Api, assert_problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRACE = "0af7651916cd43dd8448eb211c80319c"


async def test_each_kind_of_error_is_a_problem_with_its_code(api: Api) -> None:
    get, post = api.client.get, api.client.post
    assert_problem(await post("/api/v1/projects", json={"name": "UPPER"}), 400, "invalid_input")
    assert_problem(await api.stranger.get("/api/v1/me"), 401, "unauthenticated")
    assert_problem(await get("/api/v1/projects/none"), 404, "not_found")
    assert_problem(await get("/nowhere"), 404, "not_found")
    not_allowed = await api.client.put("/api/v1/projects")
    assert_problem(not_allowed, 405, "method_not_allowed")
    assert not_allowed.headers["allow"] == "GET, POST"
    assert (await post("/docs")).headers["allow"] == "GET"
    assert (await post("/api/v1/projects", json={"name": "taken"})).status_code == 201
    assert_problem(await post("/api/v1/projects", json={"name": "taken"}), 409, "conflict")
    assert_problem(await post("/api/v1/projects", json={}), 422, "invalid_input")


async def test_an_invalid_path_says_which_rule_it_breaks(api: Api) -> None:
    await api.client.post("/api/v1/projects", json={"name": "with-paths"})
    body = {"principal": "a", "project": "with-paths", "path": "../etc"}
    problem = assert_problem(await api.client.post("/api/v1/tokens", json=body), 400, "invalid_path")
    assert problem["details"] == {"path": "'../etc'", "rule": "dots"}


async def test_an_empty_path_is_an_error_and_not_a_token_for_everything(api: Api) -> None:
    await api.client.post("/api/v1/projects", json={"name": "with-paths"})
    body = {"principal": "a", "project": "with-paths", "path": ""}
    problem = assert_problem(await api.client.post("/api/v1/tokens", json=body), 400, "invalid_path")
    assert problem["details"]["rule"] == "empty"


async def test_a_project_cannot_be_named_like_anothers_id(api: Api) -> None:
    made = (await api.client.post("/api/v1/projects", json={"name": "with-an-id"})).json()
    for name in (made["id"], made["id"].replace("-", "")):
        assert_problem(await api.client.post("/api/v1/projects", json={"name": name}), 400, "invalid_input")
    assert (await api.client.get(f"/api/v1/projects/{made['id']}")).json()["name"] == "with-an-id"


async def test_what_nobody_foresaw_is_a_500_that_tells_nothing_and_a_log_line_that_tells_all(
    api: Api, log: list[tuple[str, logging.LogRecord]]
) -> None:
    problem = assert_problem(await api.stranger.get("/broken"), 500, "internal_error")
    assert "launch code" not in json.dumps(problem)
    [record] = [record for trace, record in log if trace == problem["trace_id"] and record.exc_info]
    assert record.exc_info
    assert "launch code" in str(record.exc_info[1])


@pytest.mark.parametrize(
    ("path", "status", "code"), [("/misconfigured", 503, "misconfigured"), ("/damaged", 500, "blob_corrupted")]
)
async def test_the_operators_problems_are_in_the_log_and_not_in_the_answer(
    api: Api, log: list[tuple[str, logging.LogRecord]], path: str, status: int, code: str
) -> None:
    problem = assert_problem(await api.stranger.get(path), status, code)
    assert "contextbase/blobs" not in json.dumps(problem)
    assert "db.internal" not in json.dumps(problem)
    assert [r for trace, r in log if trace == problem["trace_id"] and r.exc_info]


async def test_a_trace_id_from_outside_is_kept_in_the_answer_and_the_log(
    api: Api, log: list[tuple[str, logging.LogRecord]]
) -> None:
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    answer = await api.client.get("/api/v1/projects/none", headers=headers)
    assert assert_problem(answer, 404, "not_found")["trace_id"] == TRACE
    await asyncio.sleep(0)  # the line is written once the answer is out
    lines = [vars(record) for trace, record in log if trace == TRACE and record.getMessage() == "request"]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [("GET", "/api/v1/projects/none", 404)]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "x",
        TRACE,
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"ff-{TRACE}-b7ad6b7169203331-01",
        f"00-{TRACE.upper()}-b7ad6b7169203331-01",
    ],
)
async def test_a_trace_id_that_is_none_is_replaced(api: Api, header: str) -> None:
    answers = [await api.client.get("/healthz", headers={"traceparent": header}) for _ in range(2)]
    ids = {answer.headers["x-trace-id"] for answer in answers}
    assert len(ids) == 2
    assert TRACE not in ids
    assert all(len(each) == 32 for each in ids)


async def test_the_log_has_the_path_without_the_query(api: Api, log: list[tuple[str, logging.LogRecord]]) -> None:
    await api.stranger.get("/login", params={"token": api.owner_secret})
    api.stranger.cookies.clear()
    await asyncio.sleep(0)  # the line is written once the answer is out
    told = "".join(str(vars(record)) for _, record in log if not record.name.startswith(("httpx", "httpcore")))
    assert "/login" in told
    assert api.owner_secret not in told


async def test_a_body_that_says_it_is_too_large_is_413_before_it_is_read(api: Api) -> None:
    body = json.dumps({"name": "a", "description": "x" * MAX_BODY}).encode()
    answer = await api.client.post("/api/v1/projects", content=body, headers={"Content-Type": "application/json"})
    assert str(MAX_BODY) in assert_problem(answer, 413, "too_large")["detail"]


async def test_a_body_in_chunks_is_413_when_it_grows_too_large(api: Api) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'{"name": "chunked", "description": "'
        for _ in range(1000):
            sent += 1024
            yield b"x" * 1024

    answer = await api.client.post("/api/v1/projects", content=chunks(), headers={"Content-Type": "application/json"})
    assert_problem(answer, 413, "too_large")
    assert sent < MAX_BODY * 3
    assert_problem(await api.client.get("/api/v1/projects/chunked"), 404, "not_found")


@pytest.mark.parametrize("length", ["99999999999999999999", "9" * 5000, "1e3", "-1"])
async def test_an_absurd_content_length_is_no_500(api: Api, length: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": length}
    answer = await api.client.post("/api/v1/projects", content=b"{}", headers=headers)
    assert answer.status_code in (413, 422)


async def test_a_body_of_the_largest_size_is_taken(api: Api) -> None:
    body = {"name": "largest", "description": ""}
    body["description"] = "x" * (MAX_BODY - len(json.dumps(body)))
    answer = await api.client.post(
        "/api/v1/projects", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 201, answer.text


HOSTILE = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"\xff\xfe",
    b'{"name": null}',
    b'{"name": 1}',
    b'{"name": "a", "extra": 1}',
    b'{"name": "a\\u0000"}',
    b'{"name": "\\ud800"}',
    b'{"\\ud800": 1}',
    b'{"name": "a", "description": "\\u0000"}',
    b'{"name": "a", "description": "\\ud800"}',
    b"[" * 2000,
    b'{"name": NaN}',
    b'{"name": "..", "description": ""}',
    b'{"principal": "x", "days": NaN}',
    b'{"principal": "x", "days": 1e999}',
    b'{"principal": "x", "days": 1e-30}',
    b'{"principal": "x", "project": "a\\u0000"}',
    b'{"principal": "x", "project": ""}',
    b'{"principal": "x", "project": "../.."}',
    b'{"principal": "x", "path": "a"}',
    b'{"principal": "x", "actions": []}',
    b'{"principal": "x", "actions": ["root"]}',
    b'{"principal": "x", "kind": "system"}',
    b'{"principal": "x\\n"}',
    b'{"principal": "x", "name": "\\u0007"}',
]


@pytest.mark.parametrize("body", HOSTILE)
async def test_a_hostile_body_is_the_callers_error(api: Api, body: bytes) -> None:
    for path in ("/api/v1/projects", "/api/v1/tokens"):
        answer = await api.client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 404, 422), (path, answer.text)
        assert answer.json()["code"] in ("invalid_input", "invalid_path", "not_found")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/projects/%00",
        "/api/v1/projects/a%00b",
        "/api/v1/projects/%ff%fe",
        "/api/v1/projects/%ed%a0%80",
        "/api/v1/projects/" + "x" * 5000,
        "/api/v1/projects/..%2f..%2fetc",
        "/api/v1/projects/%0d%0aSet-Cookie:%20a=b",
        "/api/v1/projects?after=%00",
        "/api/v1/projects?after=%ff",
        "/api/v1/projects?limit=0",
        "/api/v1/projects?limit=1001",
        "/api/v1/projects?limit=99999999999999999999999",
        "/api/v1/projects?limit=%00",
        "/api/v1/tokens?before=x",
        "/api/v1/tokens?before=%00",
        "/api/v1/tokens/x",
        "/%00",
        "/%ff",
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_hostile_address_is_the_callers_error(api: Api, method: str, path: str) -> None:
    answer = await api.client.request(method, path)
    assert answer.status_code in (400, 404, 405, 422), answer.text
    assert answer.json()["code"] in ("invalid_input", "not_found", "method_not_allowed")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=8), values, max_size=3),
    max_leaves=5,
)
field_names = st.sampled_from(["name", "description", "principal", "kind", "actions", "days", "project", "path"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(field_names | st.text(max_size=5), json_values, max_size=5))
async def test_no_body_whatsoever_is_a_500(api: Api, body: dict[str, object]) -> None:
    for path in ("/api/v1/projects", "/api/v1/tokens"):
        answer = await api.client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
        assert answer.status_code < 500, (path, answer.text)


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B23:59"])
@pytest.mark.parametrize("query", ["history/resolve?project=p&ref=", "audit?project=p&since="])
async def test_a_time_beyond_the_calendar_is_the_callers_error(api: Api, query: str, moment: str) -> None:
    await api.client.post("/api/v1/projects", json={"name": "p"})
    answer = await api.client.get(f"/api/v1/{query}{moment}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input"), answer.text


async def test_half_a_character_is_the_callers_error(api: Api) -> None:
    await api.client.post("/api/v1/projects", json={"name": "p"})
    body = b'{"project": "p", "base_seq": 0, "changes": [{"action": "write", "path": "a", "text": "\\ud83d"}]}'
    headers = {"Content-Type": "application/json"}
    answer = await api.client.post("/api/v1/commits", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input"), answer.text


async def test_every_route_refuses_a_query_parameter_that_it_does_not_have(api: Api) -> None:
    tried = 0
    documented = api.app.openapi()["paths"]
    for path in documented.keys() - BROKEN_ROUTES:
        operations = documented[path]
        for method in operations:
            url = path
            for name in ("id", "review_id", "sandbox_id", "tag_id", "token_id"):
                url = url.replace(f"{{{name}}}", "00000000-0000-0000-0000-000000000000")
            url = url.replace("{", "").replace("}", "")
            answer = await api.client.request(method, f"{url}?misspelt=1&project=p", json={})
            problem = assert_problem(answer, 422, "invalid_input")
            places = [problem["where"] for problem in problem["details"]["problems"]]
            assert "query.misspelt" in places, (method, path)
            assert ("query.project" in places) == ("project" not in _parameters(operations[method])), (method, path)
            tried += 1
    assert tried > 60
    for page in ("/login", "/docs", "/openapi.json"):
        assert_problem(await api.client.get(f"{page}?misspelt=1"), 422, "invalid_input")


def _parameters(operation: dict[str, list[dict[str, str]]]) -> set[str]:
    return {parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"}
