"""Every route against every kind of principal, what its token allows, its level, and tokens of another project.

A route that is missing from the table fails the test: whoever adds one says here who may use it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from tests.support.api import BROKEN_ROUTES, LOGIN_ROUTES, Api, assert_problem
from tests.support.app_examples import APP_ROUTES, app_request
from tests.support.collab import Project, write

from contextbase.identity.roles import GIVEN
from contextbase.interfaces.api.routes.workbench import SECTIONS
from contextbase.role_vocabulary import Role

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKBENCH = {path for section in SECTIONS for path in (f"/{section}", f"/{section}/{{rest:path}}")}
OPEN_ROUTES = {"/healthz", "/readyz", "/", *LOGIN_ROUTES, "/logout", "/assets/{name}"} | WORKBENCH
KINDS = ("user", "agent", "adapter")
OF_ONE = ("sandbox", "session", "app", "password")  # they have tests of their own
ACTIONS = frozenset({"read", "write", "admin"})
READ_LEVELS = ("R", "RA", "RW-", "RW")
LEVELS = ("hidden", *READ_LEVELS)
NO_PROJECT = "no-such-project"
TERMINAL = ("?", "/api/v1/sandboxes/{sandbox_id}/terminal")  # a web socket: tests/e2e/test_sandbox_api.py
SESSION_TERMINAL = ("?", "/api/v1/sessions/{session}/terminal")  # too: tests/e2e/test_session_terminal.py
PIPE = ("?", "/api/v1/sandboxes/{sandbox_id}/exec")  # so is this
DRIVEN = {
    ("POST", "/api/v1/sessions/{session}/runs"),
    ("POST", "/api/v1/sessions/{session}/stop"),
    ("POST", "/api/v1/runs/{run}/cancel"),
    ("POST", "/api/v1/chat/{session}/stop"),
    ("POST", "/api/chat-opencode/{session}/stop"),
    ("POST", "/api/v1/runs/{run}/human-loop/{question_id}/reply"),
}
"""What somebody may do in a session that is shared with them to drive, beside reading."""
CHAT_STREAMS = {  # endless: tests/e2e/test_chat_api.py
    ("GET", "/api/v1/chat/{session}/stream"),
    ("GET", "/api/chat-opencode/{session}/stream"),
}
MCP = ("POST", "/mcp")  # a protocol of its own: tests/e2e/test_mcp.py
API = "/api/v1"
HISTORY = "/api/v1/history"
REVIEWS = "/api/v1/reviews"
WORKSPACES = "/api/v1/workspaces"
SANDBOXES = "/api/v1/sandboxes"
SESSIONS = "/api/v1/sessions"
CHAT = "/api/v1/chat"
FIRST_HISTORY = "/api/chat-opencode-history"
CHATS = (CHAT, "/api/chat-opencode")
RUNS = "/api/v1/runs"
APPS = "/api/v1/apps"


@dataclass(frozen=True)
class World:
    """A project with a file, something set aside, a rule, a group and a token to revoke."""

    project: Project
    project_id: UUID
    node_id: str
    side_version_id: str
    review_id: str
    group: str
    spare_token: str
    unique: str = field(default_factory=lambda: uuid4().hex[:10])


@dataclass(frozen=True)
class Route:
    needs: frozenset[str]
    # project: refused like one that does not exist; server: not for a project's tokens; anyone; sandbox: its agent's;
    # session: its owner's; app: whoever may see it, as tests/e2e/test_apps_api.py has it
    about: str
    request: Callable[[World, str], dict[str, Any]] = lambda _, __: {}  # given the project's name
    ok: int = 200
    fill: Callable[[World, str], dict[str, str]] = lambda _, __: {}
    first: tuple[str, str] | None = None  # the route to ask before it, as the same caller
    shows_own: bool = False  # every person may ask: they get what is theirs


def route(needs: str, about: str, *rest: Any, **options: Any) -> Route:
    return Route(frozenset(needs.split()), about, *rest, **options)


def query(**fields: Any) -> Callable[[World, str], dict[str, Any]]:
    return lambda _, project: {"params": {"project": project} | fields}


def scoped(**fields: Any) -> Callable[[World, str], dict[str, Any]]:
    return lambda _, project: {"params": {"scope": f"project:{project}"} | fields}


def body(**fields: Any) -> Callable[[World, str], dict[str, Any]]:
    return lambda _, project: {"json": {"project": project} | fields}


def rule(world: World, project: str) -> dict[str, Any]:
    return {"json": {"project": project, "subject": "everyone", "pattern": f"{world.unique}/**", "level": "R"}}


def tag(world: World, project: str) -> dict[str, Any]:
    return {"json": {"project": project, "name": f"t-{world.unique}"}}


def a_lease(_: World, project: str) -> dict[str, Any]:
    return {"json": {"project": project, "pattern": f"mine-{uuid4().hex}"}}


def by_token(*_: Any) -> dict[str, str]:
    return {"{token}": "1"}


def aside(world: World, project: str) -> dict[str, Any]:
    return {"json": {"project": project, "side_version_id": world.side_version_id}}


def an_upstream(world: World, project: str) -> dict[str, Any]:
    named = {"name": f"u-{world.unique}", "protocol": "anthropic", "url": "http://127.0.0.1:1"}
    return {"json": named | {"scope": "project", "project": project}}


def by_upstream(world: World, _: str) -> dict[str, str]:
    return {"{upstream}": f"u-{world.unique}"}


def member(world: World, _: str) -> dict[str, str]:
    return {"{group}": world.group, "{principal}": "user:owner"}


def a_user(world: World, _: str) -> dict[str, Any]:
    return {"json": {"login_name": f"p-{world.unique}"}}


def by_user(world: World, _: str) -> dict[str, str]:
    return {"{user}": f"p-{world.unique}"}


def a_department(world: World, _: str) -> dict[str, Any]:
    return {"json": {"name": f"d-{world.unique}"}}


def by_department(world: World, _: str) -> dict[str, str]:
    return {"{department}": f"d-{world.unique}"}


def a_binding(world: World, _: str) -> dict[str, Any]:
    return {"json": {"user": f"p-{world.unique}", "role": "member", "scope": "platform"}}


def of_binding(world: World, _: str) -> dict[str, Any]:
    return {"params": {"user": f"p-{world.unique}", "role": "member", "scope": "platform"}}


def no_machine(*_: Any) -> dict[str, str]:
    return {"{name}": "nowhere"}


def by_name(_: World, project: str) -> dict[str, str]:
    return {"{project}": project}


def by_review(world: World, _: str) -> dict[str, str]:
    return {"{review_id}": world.review_id}


def as_itself(*_: Any) -> dict[str, str]:
    return {"{workspace}": "me"}


A_WORKSPACE = ("POST", WORKSPACES)
ALIASED_WORKSPACE = ("POST", f"{API}/workspace/create")
A_SANDBOX = ("POST", SANDBOXES)
A_SESSION = ("POST", SESSIONS)
A_USER = ("POST", f"{API}/users")
A_DEPARTMENT = ("POST", f"{API}/departments")


def file_routes(
    prefix: str,
    asked: Callable[..., Callable[[World, str], dict[str, Any]]],
    fill: Callable[[World, str], dict[str, str]],
    first: tuple[str, str] | None = None,
) -> dict[tuple[str, str], Route]:
    """The routes of the file service, which every kind of place has."""

    def filled(world: World, project: str) -> dict[str, str]:
        return fill(world, project) | {"{path:path}": "area/a.txt"}

    def sent(**content: Any) -> Callable[[World, str], dict[str, Any]]:
        return lambda world, project: asked()(world, project) | content

    form = {"files": {"file": ("new.txt", b"new")}}
    reads = {
        "list": asked(path="area"),
        "tree": asked(),
        "read/{path:path}": asked(),
        "metadata/{path:path}": asked(),
        "parts/{path:path}": asked(),
        "history": asked(),
        "info": asked(),
        "usage": asked(),
        "download": asked(path="area/a.txt"),
    }
    changes = {
        ("POST", "sync"): (sent(), 200),
        ("PUT", "write/{path:path}"): (sent(content=b"new"), 200),
        ("POST", "upload"): (sent(**form), 201),
        ("DELETE", "delete/{path:path}"): (sent(), 200),
        ("POST", "rename"): (sent(json={"path": "area/a.txt", "target": "area/b.txt"}), 200),
        ("POST", "mkdir"): (sent(json={"path": "area/folder"}), 200),
    }
    found = {
        ("GET", f"{prefix}/{verb}"): Route(frozenset({"read"}), "project", request, fill=filled, first=first)
        for verb, request in reads.items()
    }
    found["GET", f"{prefix}/link"] = Route(  # this server has no bucket
        frozenset({"read"}), "project", asked(path="area/a.txt"), ok=409, fill=filled, first=first
    )
    return found | {
        (method, f"{prefix}/{verb}"): Route(
            frozenset({"read", "write"}), "project", request, ok=ok, fill=filled, first=first
        )
        for (method, verb), (request, ok) in changes.items()
    }


TABLE: dict[tuple[str, str], Route] = {
    ("GET", "/api/v1/version"): route("", "anyone"),
    ("GET", "/api/v1/me"): route("", "anyone"),
    ("GET", "/metrics"): route("admin", "server"),
    ("GET", "/api/v1/chores"): route("admin", "server"),
    ("GET", "/api/v1/system/doctor"): route("admin", "server"),
    ("GET", "/api/v1/system/audit"): route("admin", "server"),
    ("GET", "/api/v1/system/audit/export"): route("admin", "server"),
    ("GET", "/openapi.json"): route("", "anyone"),
    ("GET", "/docs"): route("", "anyone"),
    ("GET", "/api/v1/projects"): route("read", "anyone"),
    ("POST", "/api/v1/projects"): route(
        "admin", "server", lambda _, __: {"json": {"name": f"n-{uuid4().hex}"}}, ok=201
    ),
    ("GET", "/api/v1/projects/{project}"): route("read", "project", fill=by_name),
    ("PATCH", "/api/v1/projects/{project}"): route(
        "admin", "project", lambda _, __: {"json": {"reads_gitignore": True}}, fill=by_name
    ),
    ("GET", "/api/v1/projects/{project}/shared-folder"): route("read", "project", fill=by_name),
    ("DELETE", "/api/v1/projects/{project}"): route("read admin", "project", fill=by_name),
    ("GET", "/api/v1/projects/{project}/environment"): route("read", "project", fill=by_name),
    ("PUT", "/api/v1/projects/{project}/environment"): route(
        "admin", "project", lambda _, __: {"json": {"setup": "true"}}, fill=by_name
    ),
    ("GET", "/api/v1/projects/{project}/egress"): route("read", "project", fill=by_name),
    ("PUT", "/api/v1/projects/{project}/egress"): route(
        "admin", "project", lambda _, __: {"json": {"hosts": ["pypi.org"]}}, fill=by_name
    ),
    ("GET", "/api/v1/models"): route("read", "anyone"),
    ("POST", "/api/v1/models"): route(
        "admin", "server", lambda _, __: {"json": {"name": "claude-x", "protocol": "anthropic"}}
    ),
    ("DELETE", "/api/v1/models"): route(
        "admin", "server", lambda _, __: {"params": {"name": "claude-x"}}, first=("POST", "/api/v1/models")
    ),
    ("GET", "/api/v1/model-upstreams"): route("read", "anyone"),
    ("POST", "/api/v1/model-upstreams"): route("admin", "project", an_upstream, ok=201),
    ("DELETE", "/api/v1/model-upstreams/{upstream}"): route(
        "admin", "project", fill=by_upstream, first=("POST", "/api/v1/model-upstreams")
    ),
    ("POST", "/api/v1/model-upstreams/{upstream}/test"): route(
        "admin", "project", fill=by_upstream, first=("POST", "/api/v1/model-upstreams")
    ),
    ("GET", "/api/v1/model-budgets"): route("admin", "server"),
    ("PUT", "/api/v1/model-budgets"): route(
        "admin",
        "server",
        lambda _, __: {"json": {"scope": "user", "subject": "owner", "monthly_limit": None}},
    ),
    ("GET", "/api/v1/usage"): route("admin", "server"),
    ("GET", "/api/v1/tokens"): route("admin", "anyone", shows_own=True),
    ("POST", "/api/v1/tokens"): route(
        "admin", "server", lambda _, __: {"json": {"principal": "new", "actions": ["admin"]}}, ok=201
    ),
    ("DELETE", "/api/v1/tokens/{token_id}"): route("admin", "project", fill=lambda w, _: {"{token_id}": w.spare_token}),
    ("GET", f"{API}/tools"): route("", "anyone"),
    ("POST", f"{API}/tools/{{name}}"): route(
        "read",
        "project",
        lambda _, project: {"params": {"project": project}, "json": {"arguments": {}}},
        fill=lambda _, __: {"{name}": "list_files"},
    ),
    ("POST", f"{API}/commits"): route("write", "project", body(base_seq=0, changes=[write("w.txt", "1")])),
    ("POST", f"{API}/uploads"): route(
        "write", "project", lambda _, project: {"params": {"project": project}, "content": b"x"}, ok=201
    ),
    ("POST", f"{API}/checkouts"): route("read", "project", body()),
    ("GET", f"{API}/versions"): route("read", "project", query(path="area/a.txt")),
    ("GET", f"{API}/versions/sides"): route("read", "project", query(path="area/a.txt")),
    ("GET", f"{API}/versions/content"): route("read", "project", query(path="area/a.txt")),
    ("GET", f"{API}/commits"): route("read", "project", query()),
    ("GET", f"{HISTORY}/resolve"): route("read", "project", query()),
    ("GET", f"{HISTORY}/tags"): route("read", "project", query()),
    ("POST", f"{HISTORY}/tags"): route("read write", "project", tag, ok=201),
    ("DELETE", f"{HISTORY}/tags/{{name}}"): route(
        "write", "project", query(), ok=204, fill=lambda *_: {"{name}": "spare"}
    ),
    ("GET", f"{HISTORY}/diff"): route("read", "project", query(old="0")),
    ("GET", f"{HISTORY}/diff/versions"): route("read", "project", query(path="area/a.txt", old=1)),
    ("GET", f"{HISTORY}/blame"): route("read", "project", query(path="area/a.txt")),
    ("GET", f"{HISTORY}/archive"): route("read", "project", query()),
    ("GET", f"{API}/search/contents"): route("read", "project", query(pattern="text")),
    ("GET", f"{API}/search/names"): route("read", "project", query()),
    ("GET", f"{API}/feed"): route("read", "project", query()),
    # Of its other scopes: tests/e2e/test_events.py.
    ("GET", "/api/v1/events"): route("read", "project", scoped()),
    ("GET", "/api/v1/events/body"): route("read", "project", scoped(number=1), ok=404),  # there is none
    ("POST", f"{HISTORY}/rollback"): route("read write", "project", body(to="head")),
    ("POST", f"{HISTORY}/undo"): route("read write", "project", body(seqs=[1])),
    ("POST", f"{HISTORY}/bring-back"): route("read write", "project", aside),
    ("POST", f"{HISTORY}/purge"): route("admin", "server", body(path="area/a.txt", dry_run=True)),
    ("GET", f"{API}/audit"): route("admin", "project", query()),
    ("GET", f"{API}/audit/export"): route("admin", "project", query()),
    ("GET", REVIEWS): route("read", "project", query()),
    ("GET", f"{REVIEWS}/{{review_id}}"): route("read", "project", query(), fill=by_review),
    ("POST", f"{REVIEWS}/{{review_id}}/claim"): route("read write", "project", body(), fill=by_review),
    ("POST", f"{REVIEWS}/{{review_id}}/release"): route(
        "read write", "project", body(), fill=by_review, ok=409
    ),  # nobody has claimed it
    ("POST", f"{REVIEWS}/{{review_id}}/comments"): route(
        "read write", "project", body(text="x"), fill=by_review, ok=201
    ),
    ("POST", f"{REVIEWS}/{{review_id}}/resolve"): route("read write", "project", body(choice="theirs"), fill=by_review),
    ("POST", f"{REVIEWS}/{{review_id}}/reject"): route("read write", "project", body(), fill=by_review),
    A_WORKSPACE: route("read", "project", lambda _, project: {"json": {"project": project}}, ok=201),
    ("GET", WORKSPACES): route("read", "project", query()),
    ("GET", f"{WORKSPACES}/{{workspace}}"): route("read", "project", query(), fill=as_itself, first=A_WORKSPACE),
    ("GET", f"{WORKSPACES}/{{workspace}}/status"): route("read", "project", query(), fill=as_itself, first=A_WORKSPACE),
    ("GET", f"{WORKSPACES}/{{workspace}}/diff"): route("read", "project", query(), fill=as_itself, first=A_WORKSPACE),
    ("GET", f"{WORKSPACES}/{{workspace}}/search/contents"): route(
        "read", "project", query(pattern="text"), fill=as_itself, first=A_WORKSPACE
    ),
    ("GET", f"{WORKSPACES}/{{workspace}}/search/names"): route(
        "read", "project", query(), fill=as_itself, first=A_WORKSPACE
    ),
    # Nothing has changed in these: what has needs 'write', too, which the gate asks for.
    ("POST", f"{WORKSPACES}/{{workspace}}/commit"): route(
        "read", "project", query(), fill=as_itself, first=A_WORKSPACE
    ),
    ("POST", f"{WORKSPACES}/{{workspace}}/refresh"): route(
        "read", "project", query(), fill=as_itself, first=A_WORKSPACE
    ),
    ("POST", f"{WORKSPACES}/{{workspace}}/complete"): route(
        "read", "project", query(), fill=as_itself, first=A_WORKSPACE
    ),
    ("POST", f"{WORKSPACES}/{{workspace}}/abandon"): route(
        "read write", "project", query(), fill=as_itself, first=A_WORKSPACE
    ),
    # Aliases: tests/e2e/test_aliases.py.
    ("POST", f"{API}/collab/commit"): route("write", "project", body(base_seq=0, changes=[write("w.txt", "1")])),
    ("POST", f"{API}/collab/checkout"): route("read", "project", body()),
    ("GET", f"{API}/collab/versions"): route("read", "project", query(path="area/a.txt")),
    ALIASED_WORKSPACE: route("read", "project", lambda _, project: {"json": {"project_id": project}}, ok=201),
    ("GET", f"{API}/workspace/{{project_id}}/path"): route(
        "read", "project", fill=lambda _, project: {"{project_id}": project}, first=ALIASED_WORKSPACE
    ),
    ("POST", f"{API}/workspace/{{agent_id}}/complete"): route(
        "read",
        "project",
        lambda _, project: {"params": {"project_id": project}},
        fill=lambda *_: {"{agent_id}": "me"},
        first=ALIASED_WORKSPACE,
    ),
    **{
        (method, path): one
        for (method, path), one in file_routes(
            f"{API}/workspace/{{workspace}}", query, as_itself, first=A_WORKSPACE
        ).items()
        if not path.endswith(("/metadata/{path:path}", "/parts/{path:path}", "/write/{path:path}", "/link"))
    },
    ("POST", f"{API}/upload"): route(
        "read write",
        "project",
        lambda _, project: {
            "params": {"project": project},
            "data": {"workspaceId": "me"},
            "files": {"file": ("new.txt", b"new")},
        },
        ok=201,
        first=A_WORKSPACE,
    ),
    **file_routes(f"{WORKSPACES}/{{workspace}}", query, as_itself, first=A_WORKSPACE),
    **file_routes(f"{API}/files/{{project}}", lambda **fields: lambda *_: {"params": fields}, by_name),
    ("POST", "/api/v1/commands"): route(
        "read write", "project", lambda _, project: {"json": {"project": project, "command": "true"}}
    ),
    A_SANDBOX: route("read write", "project", lambda _, project: {"json": {"project": project}}, ok=201),
    ("GET", SANDBOXES): route("read", "project", query()),
    ("GET", f"{SANDBOXES}/{{sandbox_id}}"): route("read write", "sandbox"),
    ("POST", f"{SANDBOXES}/{{sandbox_id}}/exec"): route(
        "read write", "sandbox", lambda *_: {"json": {"command": "true"}}
    ),
    ("DELETE", f"{SANDBOXES}/{{sandbox_id}}"): route("read write", "sandbox"),
    ("GET", f"{API}/agents"): route("read", "anyone"),
    A_SESSION: route("read", "project", body(provider="scripted"), ok=201),
    # An empty message is refused once all else is looked at; any other is answered by a stream.
    **{("POST", path): route("read", "project", body(provider="scripted", message=""), ok=400) for path in CHATS},
    **{("POST", f"{path}/{{session}}/stop"): route("read write", "session") for path in CHATS},
    ("GET", CHAT): route("read", "project", query()),
    ("GET", f"{CHAT}/{{session}}/messages"): route("read", "session"),
    ("GET", FIRST_HISTORY): route("read", "project", query()),
    ("POST", FIRST_HISTORY): route("read", "project", body(provider="scripted"), ok=201),
    ("GET", f"{FIRST_HISTORY}/{{session}}"): route("read", "session"),
    ("GET", SESSIONS): route("read", "project", query()),
    ("GET", f"{SESSIONS}/{{session}}"): route("read", "session"),
    ("DELETE", f"{SESSIONS}/{{session}}"): route("read write", "session", ok=204),
    ("PUT", f"{SESSIONS}/{{session}}/runtime-version"): route(  # it is not one of an app
        "read write", "session", lambda *_: {"json": {"runtime_version": None}}, ok=409
    ),
    ("POST", f"{SESSIONS}/{{session}}/runs"): route(
        "read write", "session", lambda *_: {"json": {"message": "Go on."}}, ok=202
    ),
    ("GET", f"{SESSIONS}/{{session}}/runs"): route("read", "session"),
    ("GET", f"{SESSIONS}/{{session}}/messages"): route("read", "session"),
    ("GET", f"{SESSIONS}/{{session}}/snapshot"): route("read", "session", ok=404),  # nothing is stored yet
    ("POST", f"{SESSIONS}/{{session}}/rewind"): route(
        "read write", "session", lambda *_: {"json": {"message_id": "nothing"}}, ok=404
    ),
    ("POST", f"{SESSIONS}/{{session}}/fork"): route("read write", "session", lambda *_: {"json": {}}, ok=201),
    ("POST", f"{SESSIONS}/{{session}}/stop"): route("read write", "session"),
    ("POST", f"{SESSIONS}/{{session}}/close"): route("read write", "session"),
    ("POST", f"{SESSIONS}/{{session}}/pin"): route("read write", "session"),
    ("POST", f"{SESSIONS}/{{session}}/unpin"): route("read write", "session"),
    ("POST", f"{SESSIONS}/{{session}}/land"): route("read write", "session", ok=409),  # its run has not ended
    ("POST", f"{SESSIONS}/{{session}}/discard"): route("read write", "session", ok=409),
    ("GET", f"{API}/shared-sessions"): route("read", "project", query()),
    ("GET", f"{SESSIONS}/{{session}}/shares"): route("read", "session"),
    ("PUT", f"{SESSIONS}/{{session}}/shares/{{user}}"): route(
        "read write", "session", lambda *_: {"json": {"level": "read"}}
    ),
    ("DELETE", f"{SESSIONS}/{{session}}/shares/{{user}}"): route("read write", "session", ok=204),
    ("GET", f"{RUNS}/{{run}}"): route("read", "session"),
    ("GET", f"{RUNS}/{{run}}/events"): route("read", "session"),
    ("GET", f"{RUNS}/{{run}}/tools"): route("read", "session"),
    ("POST", f"{RUNS}/{{run}}/cancel"): route("read write", "session"),
    ("GET", f"{RUNS}/{{run}}/todos"): route("read", "session"),
    ("GET", f"{RUNS}/{{run}}/todos/events"): route("read", "session"),
    ("GET", f"{SESSIONS}/{{session}}/todos"): route("read", "session"),
    ("GET", f"{API}/human-loop"): route("read", "project", query()),
    ("GET", f"{RUNS}/{{run}}/human-loop"): route("read", "session"),
    ("POST", f"{RUNS}/{{run}}/human-loop/{{question_id}}/reply"): route(
        "read write", "session", lambda *_: {"json": {"values": ["Blue"]}}, ok=404
    ),  # nothing was asked
    ("POST", f"{API}/leases"): route("write", "project", a_lease, ok=201),
    ("GET", f"{API}/leases"): route("read", "project", query()),
    ("POST", f"{API}/leases/{{token}}/heartbeat"): route(
        "write", "project", body(), fill=by_token, ok=409
    ),  # nobody has it
    ("DELETE", f"{API}/leases/{{token}}"): route("write", "project", query(), fill=by_token, ok=204),
    ("DELETE", f"{API}/leases"): route("write", "project", query()),
    ("GET", f"{API}/policies"): route("admin", "project", query()),
    ("PUT", f"{API}/policies/rules"): route("admin", "project", rule),
    ("DELETE", f"{API}/policies/rules"): route(
        "admin", "project", query(subject="everyone", pattern="spare/**"), ok=204
    ),
    ("PUT", f"{API}/policies/default"): route("admin", "project", body(level="RW")),
    ("PUT", f"{API}/policies/merge-rules"): route("admin", "project", body(rules=[])),
    ("PUT", f"{API}/policies/lease-rules"): route("admin", "project", body(rules=[])),
    ("PUT", f"{API}/policies/ranks"): route("admin", "project", body(principal="user:owner", rank=1)),
    ("GET", f"{API}/policies/explain"): route("admin", "project", query(path="a", principal="user:owner")),
    ("GET", f"{API}/groups"): route("admin", "server"),
    ("POST", f"{API}/groups"): route("admin", "server", lambda _, __: {"json": {"name": f"g-{uuid4().hex}"}}, ok=201),
    ("PUT", f"{API}/groups/{{group}}/members/{{principal}}"): route("admin", "server", fill=member),
    ("DELETE", f"{API}/groups/{{group}}/members/{{principal}}"): route("admin", "server", fill=member),
    ("GET", f"{APPS}/store"): route("read", "anyone"),
    ("POST", APPS): route("admin", "server", lambda _, __: {"json": {"name": f"a-{uuid4().hex}"}}, ok=201),
    **dict.fromkeys(APP_ROUTES, route("read", "app")),
    ("GET", f"{API}/users"): route("admin", "server"),
    A_USER: route("admin", "server", a_user, ok=201),
    ("GET", f"{API}/users/{{user}}"): route("admin", "server", fill=by_user, first=A_USER),
    ("PATCH", f"{API}/users/{{user}}"): route(
        "admin", "server", lambda *_: {"json": {"disabled": True}}, fill=by_user, first=A_USER
    ),
    ("POST", f"{API}/users/{{user}}/invitation"): route("admin", "server", fill=by_user, first=A_USER, ok=201),
    ("POST", f"{API}/users/{{user}}/password-reset"): route("admin", "server", fill=by_user, first=A_USER, ok=201),
    ("POST", f"{API}/users/{{user}}/logout"): route("admin", "server", fill=by_user, first=A_USER),
    ("GET", f"{API}/users/{{user}}/identities"): route("admin", "server", fill=by_user, first=A_USER),
    # A person who logs in by no provider.
    ("DELETE", f"{API}/users/{{user}}/identities"): route(
        "admin", "server", lambda *_: {"params": {"issuer": "https://x.example"}}, fill=by_user, first=A_USER, ok=404
    ),
    # It is about the caller, who has no password here.
    ("PUT", f"{API}/me/password"): route("", "password", lambda *_: {"json": {"old": "x", "new": "y"}}, ok=401),
    ("GET", f"{API}/departments"): route("admin", "server"),
    A_DEPARTMENT: route("admin", "server", a_department, ok=201),
    ("PATCH", f"{API}/departments/{{department}}"): route(
        "admin", "server", lambda *_: {"json": {"title": "T"}}, fill=by_department, first=A_DEPARTMENT
    ),
    ("DELETE", f"{API}/departments/{{department}}"): route(
        "admin", "server", fill=by_department, first=A_DEPARTMENT, ok=204
    ),
    ("GET", f"{API}/roles"): route("", "anyone"),
    ("GET", f"{API}/roles/bindings"): route("admin", "server"),
    ("PUT", f"{API}/roles/bindings"): route("admin", "server", a_binding, first=A_USER),
    ("DELETE", f"{API}/roles/bindings"): route("admin", "server", of_binding, first=A_USER),
    ("GET", f"{API}/roles/explain"): route(
        "admin", "server", lambda *_: {"params": {"user": "owner", "action": "use_app", "scope": "platform"}}
    ),
    ("GET", f"{API}/machines"): route("admin", "server"),
    ("POST", f"{API}/machines/{{name}}/drain"): route("admin", "server", fill=no_machine, ok=404),
    ("POST", f"{API}/machines/{{name}}/resume"): route("admin", "server", fill=no_machine, ok=404),
    ("DELETE", f"{API}/machines/{{name}}"): route("admin", "server", fill=no_machine, ok=404),
}


async def a_project(api: Api) -> Project:
    name = f"m-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    return Project(api, name)


async def a_world(api: Api) -> World:
    project = await a_project(api)
    made = await project.write("area/a.txt", "1\n")
    await project.write("area/a.txt", "2\n", base=1)
    contested = await project.write("area/a.txt", "3\n", base=1)
    await project.rule("everyone", "spare/**", "R")
    named = {"project": project.name, "name": "spare"}
    assert (await api.client.post(f"{HISTORY}/tags", json=named)).status_code == 201
    group = f"g-{uuid4().hex[:12]}"
    assert (await project.call("POST", "groups", json={"name": group})).status_code == 201
    return World(
        project=project,
        project_id=UUID((await api.client.get(f"/api/v1/projects/{project.name}")).json()["id"]),
        node_id=made["changes"][0]["node_id"],
        side_version_id=contested["changes"][0]["side_version_id"],
        review_id=contested["changes"][0]["review_id"],
        group=group,
        spare_token=(await api.token(project=project.name))["id"],
    )


async def ask(world: World, key: tuple[str, str], secret: str, *, project: str | None = None) -> httpx.Response:
    entry, (method, path) = TABLE[key], key
    name = project or world.project.name
    for placeholder, value in entry.fill(world, name).items():
        path = path.replace(placeholder, value)
    headers = world.project.api.as_bearer(secret)
    return await world.project.api.stranger.request(method, path, headers=headers, **entry.request(world, name))


async def a_token(world: World, kind: str, actions: frozenset[str], *, project: str | None) -> str:
    made = await world.project.api.token(
        principal=f"m-{kind}-{uuid4().hex[:8]}", kind=kind, actions=sorted(actions), project=project
    )
    return str(made["secret"])


async def test_every_route_is_in_the_table(api: Api) -> None:
    routes = {
        (method, found.path or "")
        for found in iter_route_contexts(api.app.routes)
        for method in found.methods or "?"
        if method != "HEAD"
    }
    assert {(method, path) for method, path in routes if path not in OPEN_ROUTES | BROKEN_ROUTES} == {
        *TABLE,
        *CHAT_STREAMS,
        TERMINAL,
        SESSION_TERMINAL,
        PIPE,
        MCP,
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [key for key in TABLE if TABLE[key].about not in OF_ONE], ids=" ".join)
async def test_a_route_takes_the_tokens_that_allow_it_and_no_other(api: Api, key: tuple[str, str], kind: str) -> None:
    entry, world = TABLE[key], await a_world(api)
    own = None if entry.about == "server" else world.project.name
    for missing in entry.needs:
        secret = await a_token(world, kind, ACTIONS - {missing}, project=own)
        assert_problem(await ask(world, key, secret), 403, "forbidden")
    secret = await a_token(world, kind, entry.needs or frozenset({"write"}), project=own)
    if entry.first is not None:
        assert (await ask(world, entry.first, secret)).is_success
    answer = await ask(world, key, secret)
    assert answer.status_code == entry.ok, answer.text


@pytest.mark.parametrize("key", [key for key in TABLE if TABLE[key].about not in ("anyone", *OF_ONE)], ids=" ".join)
async def test_a_token_of_another_project_learns_and_changes_nothing(api: Api, key: tuple[str, str]) -> None:
    """Whatever its principal may do here: the token is not for here."""
    world, other = await a_world(api), await a_project(api)
    for level, kind in zip(LEVELS, cycle(KINDS), strict=False):
        name = f"o-{kind}-{uuid4().hex[:8]}"
        secret = await other.token(name, kind=kind, actions=sorted(ACTIONS))
        await world.project.rule(f"{kind}:{name}", "**", level)
        answer = await ask(world, key, secret)
        if TABLE[key].about == "server":
            assert_problem(answer, 403, "forbidden")
            continue
        problem = assert_problem(answer, 404, "not_found")
        nowhere = assert_problem(await ask(world, key, secret, project=NO_PROJECT), 404, "not_found")
        assert problem["detail"].replace(world.project.name, NO_PROJECT) == nowhere["detail"]
        by_id = assert_problem(await ask(world, key, secret, project=str(world.project_id)), 404, "not_found")
        assert by_id["detail"].replace(str(world.project_id), NO_PROJECT) == nowhere["detail"]


_ELSEWHERE: dict[int, dict[tuple[str, str], str]] = {}


async def people_elsewhere(api: Api) -> dict[tuple[str, str], str]:
    """One person for each role and each kind of scope it can be given in, but for the one who may do everything, where
    no test looks. They are the same for all tests, because nothing that they have is."""
    if id(api) not in _ELSEWHERE:
        project, department = await a_project(api), f"d-{uuid4().hex[:10]}"
        assert (await api.client.post(f"{API}/departments", json={"name": department})).status_code == 201
        scopes = {
            "platform": "platform", "app": "app:elsewhere", "project": f"project:{project.name}",
            "department": f"department:{department}", "user": "user:owner",
        }  # fmt: skip
        _ELSEWHERE[id(api)] = {
            (role, kind): await a_person(api, (str(role), scopes[kind]))
            for role, kind in GIVEN
            if role is not Role.PLATFORM_ADMIN
        }
    return _ELSEWHERE[id(api)]


async def a_person(api: Api, *roles: tuple[str, str]) -> str:
    """Somebody with these roles and scopes alone, and a token of theirs that limits nothing."""
    slug = f"a-{uuid4().hex[:12]}"
    made = await api.client.post(f"{API}/users", json={"login_name": slug, "member": False})
    assert made.status_code == 201, made.text
    for role, scope in roles:
        given = await api.client.put(f"{API}/roles/bindings", json={"user": slug, "role": role, "scope": scope})
        assert given.status_code == 200, given.text
    return str((await api.token(principal=slug, kind="user", actions=sorted(ACTIONS)))["secret"])


@pytest.mark.parametrize("key", [key for key in TABLE if TABLE[key].about not in OF_ONE], ids=" ".join)
async def test_a_person_may_what_their_roles_give_where_they_have_them(api: Api, key: tuple[str, str]) -> None:
    entry, world = TABLE[key], await a_world(api)
    here = f"project:{world.project.name}"
    nobody, member = await a_person(api), await a_person(api, ("member", here))
    project_admin = await a_person(api, ("project_admin", here))
    strangers = list((await people_elsewhere(api)).values())
    platform_admin = await a_person(api, ("platform_admin", "platform"))

    is_of_project = entry.about == "project"
    is_for_admins = "admin" in entry.needs and not entry.shows_own
    if is_of_project:
        denied = [nobody, *strangers, *([member] if is_for_admins else [])]
        allowed = project_admin if is_for_admins else member
    else:
        denied = [nobody, *strangers, member, project_admin] if is_for_admins else []
        allowed = platform_admin if is_for_admins else nobody
    for who in denied:
        answer = await ask(world, key, who)
        if is_of_project and who != member:
            problem = assert_problem(answer, 404, "not_found")
            nowhere = assert_problem(await ask(world, key, who, project=NO_PROJECT), 404, "not_found")
            assert problem["detail"].replace(world.project.name, NO_PROJECT) == nowhere["detail"]
        else:
            assert answer.status_code in {403, 404}, answer.text
    if entry.first is not None:
        assert (await ask(world, entry.first, allowed)).is_success
    answer = await ask(world, key, allowed)
    assert answer.status_code == entry.ok, answer.text


@pytest.mark.parametrize("key", APP_ROUTES, ids=" ".join)
async def test_an_app_is_for_its_administrators_to_change_its_members_to_use_and_there_for_nobody_else(
    api: Api, key: tuple[str, str]
) -> None:
    name, department = f"a-{uuid4().hex[:10]}", f"d-{uuid4().hex[:10]}"
    for place, made in (("departments", {"name": department}), ("apps", {"name": name})):
        assert (await api.client.post(f"{API}/{place}", json=made)).status_code == 201
    shown = await api.client.put(f"{APPS}/{name}/visibility", json={"departments": [department]})
    assert shown.status_code == 200, shown.text

    async def asked(who: str, app: str = name) -> httpx.Response:
        return await api.stranger.request(headers=api.as_bearer(who), **app_request(key, app))

    here = f"app:{name}"
    admin, member = await a_person(api, ("app_admin", here)), await a_person(api, ("member", here))
    colleague = await a_person(api, ("member", here), ("member", f"department:{department}"))
    for who in (await a_person(api), member, *(await people_elsewhere(api)).values()):
        there = assert_problem(await asked(who), 404, "not_found")["detail"]
        nowhere = assert_problem(await asked(who, "no-such-app"), 404, "not_found")["detail"]
        assert there.replace(name, "no-such-app") == nowhere
    used = await asked(colleague)
    assert used.status_code not in {401, 500}
    if key[0] != "GET":
        assert used.status_code in {403, 404}, used.text
    assert (await asked(admin)).status_code not in {401, 403, 500}


@pytest.mark.parametrize("key", [key for key in TABLE if TABLE[key].about == "sandbox"], ids=" ".join)
async def test_a_sandbox_is_its_agents_and_its_managers_and_there_for_nobody_else(
    api: Api, key: tuple[str, str]
) -> None:
    world, other, name = await a_world(api), await a_project(api), f"s-{uuid4().hex[:8]}"
    secret = await world.project.token(name, kind="agent", actions=["read", "write"])
    reader = await world.project.token(name, kind="agent", actions=["read"])
    stranger = await world.project.token(f"{name}-2", kind="agent", actions=["read", "write"])
    elsewhere = await other.token(f"{name}-3", kind="user", actions=sorted(ACTIONS))
    manager = await world.project.token(f"{name}-4", kind="user", actions=sorted(ACTIONS))
    made = await ask(world, A_SANDBOX, secret)
    assert made.status_code == 201, made.text
    (method, path), entry = key, TABLE[key]

    async def asked(who: str) -> httpx.Response:
        place = path.replace("{sandbox_id}", made.json()["id"])
        return await api.stranger.request(
            method, place, headers=api.as_bearer(who), **entry.request(world, world.project.name)
        )

    looker = await world.project.token(f"{name}-5", kind="user", actions=["read", "admin"])
    colleague = await a_person(api, ("member", f"project:{world.project.name}"))
    for who in (stranger, elsewhere, colleague, *(await people_elsewhere(api)).values()):
        assert_problem(await asked(who), 404, "not_found")
    for who in (reader, looker):
        assert_problem(await asked(who), 403, "forbidden")
    assert (await asked(secret)).status_code == entry.ok
    if method == "DELETE":
        made = await ask(world, A_SANDBOX, secret)
    assert (await asked(manager)).status_code == entry.ok


@pytest.mark.parametrize("key", [key for key in TABLE if TABLE[key].about == "session"], ids=" ".join)
async def test_a_session_is_its_owners_to_change_an_administrators_to_read_and_there_for_nobody_else(
    api: Api, key: tuple[str, str]
) -> None:
    world, other, name = await a_world(api), await a_project(api), f"s-{uuid4().hex[:8]}"
    (method, path), entry = key, TABLE[key]

    async def token_of(principal: str, *actions: str) -> str:
        return await world.project.token(principal, kind="user", actions=list(actions))

    owner = await token_of(name, "read", "write")
    session = (await ask(world, A_SESSION, owner)).json()["id"]
    sent = {"json": {"message": "Hello."}, "headers": api.as_bearer(owner)}
    run = (await api.stranger.post(f"{SESSIONS}/{session}/runs", **sent)).json()["id"]

    async def asked(who: str, session: str = session, run: str = run) -> httpx.Response:
        fields = entry.request(world, world.project.name)
        place = of_session(path, session, run)
        return await api.stranger.request(method, place, headers=api.as_bearer(who), **fields)

    stranger, nowhere = await token_of(f"{name}-2", "read", "write"), str(uuid4())
    elsewhere = await other.token(f"{name}-3", kind="user", actions=sorted(ACTIONS))
    manager, blind = await token_of(f"{name}-4", *ACTIONS), await token_of(f"{name}-5", "admin", "write")
    for who in (stranger, elsewhere, blind, *(() if method == "GET" else (manager,))):
        there = assert_problem(await asked(who), 404, "not_found")["detail"]
        not_there = assert_problem(await asked(who, nowhere, nowhere), 404, "not_found")["detail"]
        assert there.replace(session, nowhere).replace(run, nowhere) == not_there
    for missing in entry.needs:
        less = await token_of(name, *(ACTIONS - {missing}))
        assert_problem(await asked(less), 403, "forbidden")
    for who in (owner, *((manager,) if method == "GET" else ())):
        answer = await asked(who)
        assert answer.status_code == entry.ok, answer.text


def of_session(path: str, session: str, run: str) -> str:
    named = path.replace("{session}", session).replace("{run}", run).replace("{question_id}", f"{run}:1:q")
    return named.replace("{user}", "owner")


@pytest.mark.parametrize("key", [key for key in TABLE if TABLE[key].about == "session"], ids=" ".join)
async def test_a_shared_session_is_there_to_read_or_to_drive_and_for_nothing_else(
    api: Api, key: tuple[str, str]
) -> None:
    world, (method, path), entry = await a_world(api), key, TABLE[key]
    here = ("member", f"project:{world.project.name}")
    owner, reader, driver, colleague = [await a_person(api, here) for _ in range(4)]

    async def asked(who: str, method: str, path: str, **fields: Any) -> httpx.Response:
        return await api.stranger.request(method, path, headers=api.as_bearer(who), **fields)

    async def slug_of(who: str) -> str:
        return str((await asked(who, "GET", f"{API}/me")).json()["principal"])

    session = (await ask(world, A_SESSION, owner)).json()["id"]
    run = (await asked(owner, "POST", f"{SESSIONS}/{session}/runs", json={"message": "Hello."})).json()["id"]
    for who, level in ((reader, "read"), (driver, "drive")):
        place = f"{SESSIONS}/{session}/shares/{await slug_of(who)}"
        assert (await asked(owner, "PUT", place, json={"level": level})).status_code == 200

    async def tried(who: str) -> int:
        fields = entry.request(world, world.project.name)
        return (await asked(who, method, of_session(path, session, run), **fields)).status_code

    for who in (colleague, *(await people_elsewhere(api)).values()):
        assert await tried(who) == 404
    may_read = {"GET": entry.ok}.get(method, 404)
    if path.endswith("/snapshot"):
        may_read = 403
    assert await tried(reader) == may_read
    assert await tried(driver) == (entry.ok if key in DRIVEN else may_read)
    said = await asked(reader, "POST", CHAT, json={"id": session, "message": "Mine?"})
    assert_problem(said, 403, "forbidden")
    for who in (reader, driver):
        place = f"{SESSIONS}/{session}/shares/{await slug_of(who)}"
        assert (await asked(owner, "DELETE", place)).status_code == 204
        assert await tried(who) == 404


# What a writer at each level may do below `area/`, where it has no rights above that level.
WRITES: dict[str, tuple[dict[str, Any], frozenset[str]]] = {
    "create": (write("area/new.txt", "x"), frozenset({"RA", "RW-", "RW"})),
    "mkdir": ({"action": "mkdir", "path": "area/folder"}, frozenset({"RA", "RW-", "RW"})),
    "change": (write("area/a.txt", "x\n"), frozenset({"RW-", "RW"})),
    "delete": ({"action": "delete", "path": "area/a.txt"}, frozenset({"RW"})),
    "rename": ({"action": "rename", "path": "area/a.txt", "target": "area/b.txt"}, frozenset({"RW"})),
    "move out": ({"action": "rename", "path": "area/a.txt", "target": "open/b.txt"}, frozenset({"RW"})),
    "delete folder": ({"action": "delete", "path": "area"}, frozenset({"RW"})),
    "move folder": ({"action": "rename", "path": "area", "target": "open/area"}, frozenset({"RW"})),
    "move in": ({"action": "rename", "path": "open/o.txt", "target": "area/o.txt"}, frozenset({"RA", "RW-", "RW"})),
}


async def a_limited_world(api: Api, kind: str, level: str) -> tuple[World, str]:
    """A project, and the token of somebody with that level on `area/**`, who may do everything elsewhere."""
    world = await a_world(api)
    await world.project.write("open/o.txt", "o\n", base=2)
    name = f"l-{kind}-{uuid4().hex[:8]}"
    secret = await world.project.token(name, kind=kind, actions=sorted(ACTIONS))
    await world.project.rule(f"{kind}:{name}", "area/**", level)
    return world, secret


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
async def test_reads_show_what_the_level_allows(api: Api, kind: str, level: str) -> None:
    world, secret = await a_limited_world(api, kind, level)
    project, sees = world.project, level in READ_LEVELS
    assert ("area/a.txt" in await project.paths(secret)) is sees
    assert ("area/a.txt" in await project.paths(secret, paths=["area/a.txt"])) is sees
    assert ("area/a.txt" in await project.paths(secret, prefix="area")) is sees
    assert ("area/a.txt" in await project.paths(secret, seq=1)) is sees
    assert ("area" in await project.paths(secret, recursive=False)) is sees
    [side] = (await project.get("versions/sides", path="area/a.txt")).json()["side_versions"]
    for name, fields in (
        ("versions", {"path": "area/a.txt"}),
        ("versions/sides", {"path": "area/a.txt"}),
        ("versions/content", {"path": "area/a.txt"}),
        ("versions/content", {"path": "area/a.txt", "seq": 1}),
        ("versions/content", {"node_id": world.node_id, "number": 1}),
        ("versions/content", {"side_version_id": side["id"]}),
        ("commits", {"path": "area/a.txt"}),
    ):
        answer = await project.get(name, secret, **fields)
        assert answer.status_code == (200 if sees else 404), (name, fields, answer.text)
    for name, fields in (("commits", {}), ("feed", {"after": "start"}), ("audit", {}), ("audit/export", {})):
        assert ("area/a.txt" in (await project.get(name, secret, **fields)).text) is sees, name
    for name, refused in (("reviews", 200), (f"reviews/{world.review_id}", 404)):
        answer = await api.stranger.get(
            f"/api/v1/{name}", params={"project": project.name}, headers=api.as_bearer(secret)
        )
        assert answer.status_code == (200 if sees else refused)
        assert ("area/a.txt" in answer.text) is sees, name
    change = {"action": "write", "path": "open/copy", "hash": hashlib.sha256(b"1\n").hexdigest()}
    assert (await project.commit(change, who=secret)).status_code == (200 if sees else 404)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
async def test_writes_do_what_the_level_allows(api: Api, kind: str, level: str) -> None:
    for name, (change, levels) in WRITES.items():
        world, secret = await a_limited_world(api, kind, level)
        before = await world.project.paths()
        head = (await world.project.checkout()).json()["seq"]
        answer = (await world.project.commit(change, who=secret, base_seq=head)).json()
        allowed = level in levels
        assert answer["changes"][0]["status"] == ("written" if allowed else "refused"), (name, answer)
        assert answer["committed"] is allowed
        if not allowed:
            assert answer["changes"][0]["code"] == "forbidden"
            assert await world.project.paths() == before


@pytest.mark.parametrize("kind", KINDS)
async def test_a_hidden_path_is_refused_alike_whether_it_exists_or_not(api: Api, kind: str) -> None:
    world, secret = await a_limited_world(api, kind, "hidden")
    for action in ({"action": "delete"}, {"action": "write", "text": "x"}, {"action": "rename", "target": "open/t"}):
        there, not_there = [
            (await world.project.commit({"path": path} | action, who=secret, base_seq=3)).json()
            for path in ("area/a.txt", "area/z.txt")
        ]
        assert str(there).replace("a.txt", "z.txt") == str(not_there)


@pytest.mark.parametrize("kind", KINDS)
async def test_who_may_only_add_gets_a_name_of_its_own(api: Api, kind: str) -> None:
    world, secret = await a_limited_world(api, kind, "RA")
    [change] = (await world.project.write("area/a.txt", "mine", base=0, who=secret))["changes"]
    assert (change["status"], change["result_path"]) == ("written", "area/a (1).txt")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["resolve", "reject"])
async def test_a_review_is_decided_by_who_may_change_its_file(api: Api, kind: str, level: str, way: str) -> None:
    world, secret = await a_limited_world(api, kind, level)
    fields = {"choice": "theirs"} if way == "resolve" else {}
    answer = await api.stranger.post(
        f"{REVIEWS}/{world.review_id}/{way}", json={"project": world.project.name} | fields,
        headers=api.as_bearer(secret),
    )  # fmt: skip
    assert answer.status_code == {"hidden": 404, "R": 403, "RA": 403}.get(level, 200), answer.text
    content = (await world.project.get("versions/content", path="area/a.txt")).text
    assert content == ("3\n" if answer.status_code == 200 and way == "resolve" else "2\n")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_review_that_is_hidden_is_not_found_alike_whether_it_exists_or_not(api: Api, kind: str) -> None:
    world, secret = await a_limited_world(api, kind, "hidden")
    nowhere = str(uuid4())
    for way, fields in (("claim", {}), ("release", {}), ("comments", {"text": "x"}), ("reject", {})):
        there, not_there = [
            await api.stranger.post(
                f"{REVIEWS}/{review}/{way}", json={"project": world.project.name} | fields,
                headers=api.as_bearer(secret),
            )
            for review in (world.review_id, nowhere)
        ]  # fmt: skip
        problems = [assert_problem(answer, 404, "not_found")["detail"] for answer in (there, not_there)]
        assert problems[0].replace(world.review_id, nowhere) == problems[1]
