"""An attacker's look around: whatever happened in a hidden place, no answer holds a word of it."""

import hashlib
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.support.api import Api
from tests.support.collab import Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

MARK = "xyzzy"  # in every path, content, message, name and comment of what is hidden
HIDDEN = "vault"  # administrators see the rules, and so this name


class World:
    def __init__(self, project: Project, *, who: str, ids: dict[str, str]) -> None:
        self.project = project
        self.who = who
        self.ids = ids

    async def asked(self, method: str, route: str, **options: Any) -> str:
        api = self.project.api
        answer = await api.client.request(method, f"/api/v1/{route}", headers=api.as_bearer(self.who), **options)
        assert answer.status_code != 422, "a request that is not understood tells nothing anyway"
        return f"{answer.status_code} {answer.headers} {answer.text}"


@pytest_asyncio.fixture(loop_scope="module")
async def world(api: Api) -> World:
    """Hidden work of every kind, by a principal that did nothing else; the attacker may do everything elsewhere."""
    name = f"p-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    project = Project(api, name)
    insider, spy = f"{MARK}-{uuid4().hex[:6]}", f"spy-{uuid4().hex[:6]}"
    inside = await project.token(insider)
    who = await project.token(spy, kind="user", actions=["read", "write", "admin"])
    await project.rule(f"user:{spy}", f"{HIDDEN}/**", "hidden")
    await project.write("open.txt", "1\n")
    path = f"{HIDDEN}/{MARK}.txt"
    said: dict[str, Any] = {"message": f"about {MARK}", "run": f"run-{MARK}", "who": inside}
    await project.commit(write(path, f"{MARK} 1\n"), base_seq=1, **said)
    made = (await project.commit(write(path, f"{MARK} 2\n"), base_seq=2, **said)).json()["changes"][0]
    contested = (await project.commit(write(path, f"{MARK} 3\n"), base_seq=2, **said)).json()["changes"][0]
    review = f"/api/v1/reviews/{contested['review_id']}"
    comment = {"project": name, "text": f"what of {MARK}?"}
    headers = api.as_bearer(inside)
    assert (await api.client.post(f"{review}/comments", json=comment, headers=headers)).status_code == 201
    assert (await api.client.post(f"{review}/claim", json={"project": name}, headers=headers)).status_code == 200
    lease = await project.call("POST", "leases", inside, json={"project": name, "pattern": f"{HIDDEN}/**/{MARK}*"})
    assert lease.status_code == 201
    await project.commit({"action": "rename", "path": path, "target": f"{path}.bak"}, base_seq=4, **said)
    await project.write("open.txt", "2\n", base=5)
    ids = {
        "node": made["node_id"],
        "review": contested["review_id"],
        "side": contested["side_version_id"],
        "lease": str(lease.json()["token"]),
        "insider": insider,
    }
    return World(project, who=who, ids=ids)


async def test_no_reading_route_tells_of_what_is_hidden(world: World) -> None:
    name, ids = world.project.name, world.ids
    hidden = hashlib.sha256(f"{MARK} 1\n".encode()).hexdigest()
    for route, query in (
        ("projects", {}),
        (f"projects/{name}", {}),
        ("commits", {}),
        ("commits", {"run": "r"}),
        ("commits", {"principal": f"agent:{ids['insider']}"}),
        ("feed", {"after": "start"}),
        ("audit", {}),
        ("audit", {"action": "commit"}),
        ("audit/export", {}),
        ("leases", {}),
        ("leases", {"path": "**"}),
        ("leases", {"owner": f"agent:{ids['insider']}"}),
        ("leases", {"path": "vault*"}),
        ("reviews", {}),
        ("reviews", {"state": "open"}),
        (f"reviews/{ids['review']}", {}),
        ("history/diff", {"old": "0"}),
        ("history/diff", {"old": "0", "principal": f"agent:{ids['insider']}"}),
        ("history/diff", {"commit": "3"}),
        ("history/archive", {"format": "tar"}),
        ("history/archive", {"at": "3", "format": "tar"}),
        ("history/tags", {}),
        ("versions/content", {"node_id": ids["node"], "number": 1}),
        ("versions/content", {"side_version_id": ids["side"]}),
        ("workspaces", {}),
        ("sandboxes", {}),
    ):
        own = {} if route.startswith("projects") else {"project": name}
        answer = await world.asked("GET", route, params=own | query)
        told = answer.replace(ids["insider"], "") if ids["insider"] in str(query) else answer
        assert MARK not in told, (route, query)
        assert hidden not in told, (route, query)


async def test_no_writing_route_tells_of_what_is_hidden(world: World) -> None:
    name, ids = world.project.name, world.ids
    hidden = hashlib.sha256(f"{MARK} 1\n".encode()).hexdigest()
    for route, body in (
        ("checkouts", {"recursive": False}),
        ("checkouts", {"seq": 3, "contents": True}),
        ("commits", {"base_seq": 3, "changes": [{"action": "write", "path": "c", "hash": hidden}]}),
        ("commits", {"base_seq": 6, "changes": [{"action": "delete", "path": "open.txt"}], "lease": 1}),
        (
            "commits",
            {"base_seq": 6, "changes": [{"action": "mkdir", "path": "vault-"}], "lease": int(ids["lease"])},
        ),
        ("leases", {"pattern": "**"}),
        ("leases", {"pattern": "vault*/**"}),
        (f"leases/{ids['lease']}/heartbeat", {}),
        (f"reviews/{ids['review']}/claim", {}),
        (f"reviews/{ids['review']}/comments", {"text": "x"}),
        (f"reviews/{ids['review']}/resolve", {"choice": "theirs"}),
        (f"reviews/{ids['review']}/reject", {}),
        ("history/bring-back", {"side_version_id": ids["side"]}),
        ("history/rollback", {"to": "3", "dry_run": True}),
        ("history/rollback", {"to": "3"}),
        ("history/undo", {"seqs": [2, 3, 4, 5], "dry_run": True}),
        ("history/undo", {"principal": f"agent:{ids['insider']}"}),
    ):
        answer = await world.asked("POST", route, json={"project": name} | body)
        told = answer.replace(ids["insider"], "") if ids["insider"] in str(body) else answer
        assert MARK not in told, (route, body, told)
    path = f"{HIDDEN}/{MARK}.txt.bak"
    assert path in await world.project.paths()
    for route, owner in ((f"leases/{ids['lease']}", {}), ("leases", {"owner": "agent:nobody"})):
        assert MARK not in await world.asked("DELETE", route, params={"project": name} | owner)
