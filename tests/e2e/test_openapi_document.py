"""Generated requests for every route of the OpenAPI document: each answer is one that the document names."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.support.openapi import openapi_document
from tests.support.openapi_people_and_apps import PEOPLE_AND_APPS
from tests.support.postgres import reachable_folder
from tests.support.run_world import remove_sandboxes
from tests.support.scripted_model import script
from tests.support.server import start_server
from tests.support.workspaces import unmount_all

from contextbase.bootstrap import open_core
from contextbase.config import Settings
from contextbase.machines.repository import MachineRepository
from contextbase.streams.model import SYSTEM, NewEvent

API = "/api/v1"
HISTORY = "/api/v1/history"
REVIEWS = "/api/v1/reviews"
WORKSPACES = "/api/v1/workspaces"
SANDBOXES = "/api/v1/sandboxes"
SESSIONS = "/api/v1/sessions"
CHAT = "/api/v1/chat"
RUNS = "/api/v1/runs"
AGENT, GROUP = "agent:reader", "readers"
# The document cannot say which paths, names and pairs of fields are valid: what it allows may still be refused.
LEFT_OUT = [positive_data_acceptance]
# Done in tests/e2e/test_download_links.py, with a bucket; in test_logins_api.py, by somebody who has a password; and in
# test_openid_login.py, with a provider.
DONE_ELSEWHERE = {
    "GET /api/v1/files/{project}/link",
    "GET /api/v1/workspaces/{workspace}/link",
    "PUT /api/v1/me/password",
    "DELETE /api/v1/users/{user}/identities",
}

# From a fixture, so that only the process that runs this test takes the seconds to make it: a subtest for each route.
schema = schemathesis.pytest.from_fixture("document")


@pytest.fixture(scope="module")
def document() -> Any:
    return schemathesis.openapi.from_dict(
        openapi_document(),
        config=schemathesis.Config.from_dict({"cache": {"enabled": False}}),  # or it keeps failures in the sources
    )


@dataclass(frozen=True, kw_only=True)
class World:
    """A server with a project that has something of everything, and what the routes answered."""

    url: str
    owner: httpx.Client
    project: str
    node_id: str
    side_version_id: str
    review_id: str
    asked: dict[str, str] = field(default_factory=dict)  # a run's question
    machines: list[str] = field(default_factory=list)  # that were stopped, to remove
    answered: Counter[tuple[str, bool]] = field(default_factory=Counter)  # by route, and whether it went well

    def made(self, route: str, **body: Any) -> dict[str, Any]:
        answer = self.owner.post(route, json=body)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture(scope="module")
def world(document: Any) -> Iterator[World]:
    with reachable_folder() as folder:
        try:
            with start_server(folder / "data") as server:
                token = (server.data / "owner-token").read_text().strip()
                headers = {"Authorization": f"Bearer {token}"}
                with httpx.Client(base_url=server.url, headers=headers) as owner:
                    world = a_world(server.url, owner)
                    asyncio.run(publish_large_event(server.data))
                    world.machines.extend(asyncio.run(stop_machines(server.data)))
                    yield world
        finally:
            asyncio.run(remove_sandboxes(folder / "data"))
            unmount_all(folder)
    routes = {found.ok().label for found in document.get_all_operations()} - DONE_ELSEWHERE
    only_refused = {route for route in routes if not world.answered[route, True]}
    assert not only_refused, f"what was never done proves little: {sorted(only_refused)}"


def a_world(url: str, owner: httpx.Client) -> World:
    name = "fuzzed"
    owner.post("/api/v1/projects", json={"name": name}).raise_for_status()
    owner.post("/api/v1/tokens", json={"principal": "reader"}).raise_for_status()
    owner.post(f"{API}/groups", json={"name": GROUP}).raise_for_status()
    for seq, text in enumerate(("1\n", "2\n", "3\n")):
        change = {"action": "write", "path": "a.txt", "text": text, "base": min(seq, 1)}
        answer = owner.post(f"{API}/commits", json={"project": name, "changes": [change]})
        answer.raise_for_status()
    [made] = answer.json()["changes"]
    return World(
        url=url,
        owner=owner,
        project=name,
        node_id=made["node_id"],
        side_version_id=made["side_version_id"],
        review_id=made["review_id"],
    )


async def publish_large_event(data: Path) -> None:
    async with open_core(Settings(data=data)) as services:
        assert await services.streams.publish(SYSTEM, NewEvent(kind="large", payload={"text": "x" * 9000})) == [1]


async def stop_machines(data: Path) -> list[str]:
    """The names of machines that ran once."""
    names = [f"spare-{number}" for number in range(50)]
    async with open_core(Settings(data=data)) as services, services.database.connection() as connection:
        machines, process = MachineRepository(), uuid4()
        for name in names:
            lease = timedelta(seconds=1)
            await machines.register(connection, name, process, address=None, version="0", lease=lease)
            await machines.leave(connection, name, process)
    return names


def a_review(world: World) -> str:
    """Something that waits for a person, claimed by the owner."""
    path = f"review-{uuid4().hex}.txt"
    base = world.owner.post(f"{API}/checkouts", json={"project": world.project, "paths": []}).json()["seq"]
    for text in ("1\n", "2\n"):
        change = {"action": "write", "path": path, "text": text, "base": base}
        answer = world.made(f"{API}/commits", project=world.project, changes=[change])
    review_id = str(answer["changes"][0]["review_id"])
    world.made(f"{REVIEWS}/{review_id}/claim", project=world.project)
    return review_id


def a_workspace(world: World) -> dict[str, dict[str, Any]]:
    """A request for one of an agent's own."""
    made = world.made(WORKSPACES, project=world.project, agent=f"a-{uuid4().hex[:12]}")
    return {"path_parameters": {"workspace": made["id"]}, "query": {}}


def a_file(world: World, place: str) -> dict[str, dict[str, Any]]:
    """A rename of a file of its own."""
    name = f"spare-{uuid4().hex}.txt"
    world.owner.put(f"{place}/write/{name}", content=b"spare").raise_for_status()
    return {"body": {"path": name, "target": f"moved-{name}"}}


def a_file_of_a_workspace(world: World) -> dict[str, dict[str, Any]]:
    workspace = a_workspace(world)
    return workspace | a_file(world, f"{WORKSPACES}/{workspace['path_parameters']['workspace']}")


def a_file_to_read(world: World) -> dict[str, dict[str, Any]]:
    workspace = a_workspace(world)
    return workspace | {"path_parameters": workspace["path_parameters"] | {"path": "a.txt"}}


def a_sandbox(world: World) -> dict[str, dict[str, Any]]:
    """A request for one of an agent's own."""
    made = world.made(SANDBOXES, project=world.project, agent=f"a-{uuid4().hex[:12]}")
    return {"path_parameters": {"sandbox_id": made["id"]}}


def a_session(world: World) -> dict[str, dict[str, Any]]:
    made = world.made(SESSIONS, project=world.project, provider="scripted")
    return {"path_parameters": {"session": made["id"]}, "query": {}}


def _read_to_the_end(world: World, run: str) -> None:
    headers = {"Accept": "text/event-stream"}
    with world.owner.stream("GET", f"{RUNS}/{run}/events", headers=headers, timeout=600) as events:
        events.read()


def a_run(world: World) -> dict[str, dict[str, Any]]:
    """One that was canceled, and has ended."""
    session = a_session(world)["path_parameters"]["session"]
    run = world.made(f"{SESSIONS}/{session}/runs", message="Say hello.")["id"]
    world.owner.post(f"{RUNS}/{run}/cancel").raise_for_status()
    _read_to_the_end(world, run)
    return {"path_parameters": {"run": run, "session": session}, "query": {}}


def a_session_at_rest(world: World) -> dict[str, dict[str, Any]]:
    return {"path_parameters": {"session": a_run(world)["path_parameters"]["session"]}}


def a_session_with_a_snapshot(world: World) -> dict[str, dict[str, Any]]:
    session = a_session(world)["path_parameters"]["session"]
    run = world.made(f"{SESSIONS}/{session}/runs", message=script({"text": "Hello."}))["id"]
    _read_to_the_end(world, run)
    return {"path_parameters": {"session": session}}


def a_run_to_go_back_to(world: World) -> dict[str, dict[str, Any]]:
    of_it = a_run(world)["path_parameters"]
    return {"path_parameters": {"session": of_it["session"]}, "body": {"message_id": of_it["run"]}}


def a_chat(world: World) -> dict[str, dict[str, Any]]:
    """The same message each time is one run."""
    message = {"id": "hello", "role": "user", "parts": [{"type": "text", "text": "Say hello."}]}
    return {"body": {"id": "greetings", "project": world.project, "provider": "scripted", "messages": [message]}}


def a_message(world: World) -> dict[str, dict[str, Any]]:
    return a_session(world) | {"body": {"message": "Say hello."}, "headers": {}}


def of_a_run(world: World) -> dict[str, dict[str, Any]]:
    return {"path_parameters": {"run": a_run(world)["path_parameters"]["run"]}, "query": {}}


def an_asked_question(world: World) -> dict[str, dict[str, Any]]:
    """One for all: the same answer can be given again."""
    if not world.asked:
        session = a_session(world)["path_parameters"]["session"]
        ask = {"tool": "ask", "input": {"question": "Which?", "options": ["Blue"]}}
        run = world.made(f"{SESSIONS}/{session}/runs", message=script(ask))["id"]
        while not (found := world.owner.get(f"{RUNS}/{run}/human-loop").raise_for_status().json()["questions"]):
            time.sleep(0.1)
        world.asked.update(run=run, question_id=found[0]["question_id"])
    return {"path_parameters": dict(world.asked), "body": {"values": ["Blue"]}}


def a_new_upstream(world: World) -> dict[str, Any]:
    """A project has one for each protocol."""
    project = world.made("/api/v1/projects", name=f"spare-{uuid4().hex}")["name"]
    return {
        "name": f"u-{uuid4().hex}",
        "protocol": "openai",
        "url": "http://127.0.0.1:1",
        "scope": "project",
        "project": project,
    }


def an_upstream(world: World) -> dict[str, dict[str, Any]]:
    return {"path_parameters": {"upstream": world.made("/api/v1/model-upstreams", **a_new_upstream(world))["name"]}}


def a_lease(world: World) -> dict[str, dict[str, Any]]:
    """A request about one that the owner has."""
    made = world.made(f"{API}/leases", project=world.project, pattern=f"spare-{uuid4().hex}")
    return {"path_parameters": {"token": made["token"]}}


def a_rule(world: World) -> dict[str, str]:
    rule = {"project": world.project, "subject": "everyone", "pattern": f"spare-{uuid4().hex}/**"}
    world.owner.put(f"{API}/policies/rules", json=rule | {"level": "R"}).raise_for_status()
    return rule


# What generated text would never hit: things that are there. A short value of these parameters means one of them.
AIMS: dict[str, Callable[[World], object]] = {
    "path": lambda _: "a.txt",
    "principal": lambda _: AGENT,
    "group": lambda _: GROUP,
    "subject": lambda _: AGENT,
    "pattern": lambda _: "docs/**",
    "node_id": lambda world: world.node_id,
    "review_id": lambda world: world.review_id,
    "after": lambda _: "start",
    "ref": lambda _: "head",
    "at": lambda _: "head",
    "old": lambda _: "0",
    "new": lambda _: "head",
}
# Requests that need something of their own, to take away or to fit together.
WHOLE: dict[str, Callable[[World], dict[str, dict[str, Any]]]] = {
    "DELETE /api/v1/projects/{project}": lambda world: {
        "path_parameters": {"project": world.made("/api/v1/projects", name=f"spare-{uuid4().hex}")["id"]}
    },
    "PUT /api/v1/projects/{project}/egress": lambda world: {
        "path_parameters": {"project": world.project},
        "body": {"hosts": ["pypi.org", "preset:npm"]},
    },
    "POST /api/v1/models": lambda _: {"body": {"name": f"m-{uuid4().hex}", "protocol": "openai"}},
    "DELETE /api/v1/models": lambda world: {
        "query": {"name": world.made("/api/v1/models", name=f"m-{uuid4().hex}", protocol="openai")["name"]}
    },
    "POST /api/v1/model-upstreams": lambda world: {"body": a_new_upstream(world)},
    "DELETE /api/v1/model-upstreams/{upstream}": an_upstream,
    "POST /api/v1/model-upstreams/{upstream}/test": an_upstream,
    "PUT /api/v1/model-budgets": lambda world: {
        "body": {"scope": "project", "subject": world.project, "monthly_limit": 1000}
    },
    "POST /api/v1/tokens": lambda world: {"body": {"principal": "spare", "project": world.project}},
    "DELETE /api/v1/tokens/{token_id}": lambda world: {
        "path_parameters": {"token_id": world.made("/api/v1/tokens", principal="spare")["id"]}
    },
    "GET /api/v1/events": lambda world: {"query": {"scope": [f"project:{world.project}", "user:me", "system"]}},
    "GET /api/v1/events/body": lambda _: {"query": {"scope": "system", "number": 1}},
    f"POST {API}/leases/{{token}}/heartbeat": a_lease,
    f"DELETE {API}/leases/{{token}}": a_lease,
    f"DELETE {API}/policies/rules": lambda world: {"query": a_rule(world)},
    f"POST {HISTORY}/rollback": lambda world: {"body": {"project": world.project, "to": "head"}},
    f"POST {HISTORY}/undo": lambda world: {"body": {"project": world.project, "seqs": [1], "dry_run": True}},
    f"POST {HISTORY}/bring-back": lambda world: {
        "body": {"project": world.project, "side_version_id": world.side_version_id}
    },
    f"POST {HISTORY}/purge": lambda world: {"body": {"project": world.project, "path": "a.txt", "dry_run": True}},
    f"GET {HISTORY}/blame": lambda world: {"query": {"project": world.project, "path": "a.txt"}},
    f"POST {HISTORY}/tags": lambda world: {"body": {"project": world.project, "name": f"t-{uuid4().hex}"}},
    f"DELETE {HISTORY}/tags/{{name}}": lambda world: {
        "path_parameters": {
            "name": world.made(f"{HISTORY}/tags", project=world.project, name=f"t-{uuid4().hex}")["name"]
        },
        "query": {"project": world.project},
    },
    f"POST {REVIEWS}/{{review_id}}/claim": lambda world: {"path_parameters": {"review_id": a_review(world)}},
    f"POST {REVIEWS}/{{review_id}}/comments": lambda world: {"path_parameters": {"review_id": a_review(world)}},
    f"POST {REVIEWS}/{{review_id}}/release": lambda world: {"path_parameters": {"review_id": a_review(world)}},
    f"POST {REVIEWS}/{{review_id}}/resolve": lambda world: {
        "path_parameters": {"review_id": a_review(world)},
        "body": {"project": world.project, "choice": "theirs"},
    },
    f"POST {REVIEWS}/{{review_id}}/reject": lambda world: {"path_parameters": {"review_id": a_review(world)}},
    f"GET {WORKSPACES}/{{workspace}}": a_workspace,
    f"GET {WORKSPACES}/{{workspace}}/status": a_workspace,
    f"GET {WORKSPACES}/{{workspace}}/diff": a_workspace,
    f"POST {WORKSPACES}/{{workspace}}/commit": a_workspace,
    f"POST {WORKSPACES}/{{workspace}}/complete": a_workspace,
    f"POST {WORKSPACES}/{{workspace}}/abandon": a_workspace,
    f"GET {WORKSPACES}/{{workspace}}/read/{{path}}": a_file_to_read,
    f"GET {WORKSPACES}/{{workspace}}/metadata/{{path}}": a_file_to_read,
    f"GET {WORKSPACES}/{{workspace}}/parts/{{path}}": a_file_to_read,
    f"POST {WORKSPACES}/{{workspace}}/rename": a_file_of_a_workspace,
    f"POST {API}/files/{{project}}/rename": lambda world: (
        {"path_parameters": {"project": world.project}} | a_file(world, f"{API}/files/{world.project}")
    ),
    f"GET {WORKSPACES}/{{workspace}}/search/contents": lambda world: a_workspace(world) | {"query": {"pattern": "1"}},
    f"GET {WORKSPACES}/{{workspace}}/search/names": lambda world: a_workspace(world) | {"query": {"name": "a"}},
    f"POST {API}/tools/{{name}}": lambda world: {
        "path_parameters": {"name": "list_files"},
        "query": {"project": world.project},
        "body": {"arguments": {}},
    },
    f"POST {API}/machines/{{name}}/drain": lambda world: {"path_parameters": {"name": world.machines[0]}},
    f"POST {API}/machines/{{name}}/resume": lambda world: {"path_parameters": {"name": world.machines[0]}},
    f"DELETE {API}/machines/{{name}}": lambda world: {"path_parameters": {"name": world.machines.pop()}},
    f"POST {CHAT}": a_chat,
    f"GET {CHAT}": lambda world: {"query": {"project": world.project}},
    f"GET {CHAT}/{{session}}/stream": a_session,
    f"GET {CHAT}/{{session}}/messages": a_session,
    f"POST {CHAT}/{{session}}/stop": a_session,
    f"POST {SESSIONS}": lambda world: {"body": {"project": world.project, "provider": "scripted"}},
    f"GET {SESSIONS}": lambda world: {"query": {"project": world.project}},
    f"GET {SESSIONS}/{{session}}": a_session,
    f"GET {SESSIONS}/{{session}}/snapshot": a_session_with_a_snapshot,
    f"DELETE {SESSIONS}/{{session}}": a_session,
    f"POST {SESSIONS}/{{session}}/runs": a_message,
    f"GET {SESSIONS}/{{session}}/runs": a_session,
    f"GET {SESSIONS}/{{session}}/messages": a_session,
    **{f"POST {SESSIONS}/{{session}}/{verb}": a_session for verb in ("stop", "close", "pin", "unpin")},
    **{f"POST {SESSIONS}/{{session}}/{verb}": a_session_at_rest for verb in ("land", "discard")},
    f"POST {SESSIONS}/{{session}}/fork": lambda world: a_session(world) | {"body": {}},
    f"POST {SESSIONS}/{{session}}/rewind": a_run_to_go_back_to,
    f"GET {RUNS}/{{run}}": of_a_run,
    f"GET {RUNS}/{{run}}/events": of_a_run,
    f"GET {RUNS}/{{run}}/tools": of_a_run,
    f"POST {RUNS}/{{run}}/cancel": of_a_run,
    f"GET {RUNS}/{{run}}/todos": of_a_run,
    f"GET {RUNS}/{{run}}/todos/events": of_a_run,
    f"GET {SESSIONS}/{{session}}/todos": a_session,
    f"GET {API}/human-loop": lambda world: {"query": {"project": world.project}},
    f"GET {RUNS}/{{run}}/human-loop": of_a_run,
    f"POST {RUNS}/{{run}}/human-loop/{{question_id}}/reply": an_asked_question,
    f"GET {SANDBOXES}/{{sandbox_id}}": a_sandbox,
    f"POST {SANDBOXES}/{{sandbox_id}}/exec": lambda world: a_sandbox(world) | {"body": {"command": "true"}},
    f"DELETE {SANDBOXES}/{{sandbox_id}}": a_sandbox,
    **{route: (lambda world, made=made: made(world.owner)) for route, made in PEOPLE_AND_APPS.items()},
}


def aim(case: schemathesis.Case, world: World) -> None:
    """Point a request that the document allows at things that are there."""
    if isinstance(case.query, dict) and "wait" in case.query:
        case.query["wait"] = 0  # nothing comes for it to wait for
    if isinstance(case.body, dict) and isinstance(case.body.get("wait"), int | float):
        case.body["wait"] = 0
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    for part in (case.path_parameters, case.query, case.body):
        if isinstance(part, dict):
            point(part, world)
    for name in ("If-Match", "If-None-Match"):
        (case.headers or {}).pop(name, None)  # generated text is the ETag of nothing: all would be refused
    for name, value in WHOLE.get(case.operation.label, lambda _: {})(world).items():
        setattr(case, name, value)


def point(part: dict[str, Any], world: World) -> None:
    if "project" in part:
        part["project"] = world.project
    for name, aimed in AIMS.items():
        if isinstance(part.get(name), str) and (len(part[name]) < 2 or name in ("node_id", "review_id")):
            part[name] = aimed(world)
    for change in part.get("changes", ()):
        point(change, world)


@schema.parametrize()
@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_the_document_names(case: schemathesis.Case, world: World) -> None:
    aim(case, world)
    headers = {"Authorization": world.owner.headers["Authorization"]}
    answer = case.call_and_validate(base_url=world.url, headers=headers, timeout=600, excluded_checks=LEFT_OUT)
    world.answered[case.operation.label, answer.status_code < 300] += 1
