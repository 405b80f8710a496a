"""The routes that go past FastAPI answer as FastAPI would: each request is sent so that it takes the one way, and so
that it takes the other."""

from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.support.api import Api
from tests.support.collab import API, Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

DIRECT, ROUNDABOUT = "application/json", "application/json; charset=utf-8"
CHANGE = write("a.txt", "one\n", base=0)

BODIES: dict[str, dict[str, bytes | dict[str, Any]]] = {
    "commits": {
        "a write": {"changes": [CHANGE]},
        "nothing": {"changes": []},
        "a base version": {"changes": [write("a.txt", "one\n", base_version=1)]},
        "a base version that is none": {"changes": [write("a.txt", "one\n", base_version=9)]},
        "no base": {"changes": [write("a.txt", "one\n")]},
        "a base to come": {"changes": [write("a.txt", "one\n", base=99)]},
        "a field that is none": {"changes": [CHANGE], "colour": "red"},
        "a bad path": {"changes": [write("../a", "one\n", base=0)]},
        "a hash of nothing": {"changes": [{"action": "write", "path": "a", "hash": "0" * 64, "base": 0}]},
        "another's project": {"project": "nowhere", "changes": [CHANGE]},
        "numbers as text": {"changes": [CHANGE | {"base": "0"}]},
        "no JSON": b'{"project": ',
        "half a character": b'{"project": "twice", "changes": [{"action": "write", "path": "a", "text": "\\ud83d"}]}',
        "no object": b"[1]",
        "no body": b"",
    },
    "checkouts": {
        "paths": {"paths": ["a.txt", "b.txt"], "contents": True},
        "everything": {},
        "a snapshot": {"paths": ["a.txt"], "seq": 0},
        "a snapshot to come": {"seq": 99},
        "two things at once": {"paths": ["a.txt"], "prefix": "docs"},
        "no list": {"paths": "a.txt"},
        "another's project": {"project": "nowhere"},
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def project(api: Api) -> Project:
    assert (await api.client.post("/api/v1/projects", json={"name": "twice"})).status_code == 201
    project = Project(api, "twice")
    await project.write("a.txt", "one\n")
    return project


async def sent(project: Project, route: str, body: bytes | dict[str, Any], content_type: str, **headers: str) -> Any:
    given = {"json": {"project": project.name} | body} if isinstance(body, dict) else {"content": body}
    answer = await project.call("POST", route, headers={"Content-Type": content_type} | headers, **given)
    return seen(answer)


def seen(answer: httpx.Response) -> tuple[int, str, dict[str, Any]]:
    body = answer.json()
    assert body.pop("trace_id", answer.headers["x-trace-id"]) == answer.headers["x-trace-id"]
    return answer.status_code, answer.headers["content-type"], body


@pytest.mark.parametrize(("route", "what"), [(route, what) for route in BODIES for what in BODIES[route]])
async def test_both_ways_answer_alike(project: Project, route: str, what: str) -> None:
    body = BODIES[route][what]
    assert await sent(project, route, body, DIRECT) == await sent(project, route, body, ROUNDABOUT)


@pytest.mark.parametrize("secret", ["cb_" + "x" * 43, "nonsense", ""])
async def test_both_ways_refuse_a_bad_token_alike(project: Project, secret: str) -> None:
    body = BODIES["checkouts"]["paths"]
    answers = [
        await sent(project, "checkouts", body, content_type, Authorization=f"Bearer {secret}")
        for content_type in (DIRECT, ROUNDABOUT)
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 401


async def test_a_request_is_counted_under_the_same_route_both_ways(api: Api, project: Project) -> None:
    async def counted() -> float:
        text = (await api.client.get("/metrics")).text
        line = f'contextbase_http_requests_total{{method="POST",route="{API}/checkouts",status="200"}}'
        return float(next(row.rpartition(" ")[2] for row in text.splitlines() if row.startswith(line)))

    await sent(project, "checkouts", {}, DIRECT)
    before = await counted()
    await sent(project, "checkouts", {}, DIRECT)
    await sent(project, "checkouts", {}, ROUNDABOUT)
    assert await counted() == before + 2


async def test_a_key_in_the_header_counts_as_one_in_the_body(project: Project) -> None:
    body = {"changes": [write("keyed.txt", "once\n", base=0)]}
    first = await sent(project, "commits", body, DIRECT, **{"Idempotency-Key": "k-1"})
    again = await sent(project, "commits", body | {"key": "k-1"}, DIRECT)
    assert first == again
    status, _, problem = await sent(project, "commits", body | {"key": "k-2"}, DIRECT, **{"Idempotency-Key": "k-1"})
    assert (status, problem["code"]) == (400, "invalid_input")
