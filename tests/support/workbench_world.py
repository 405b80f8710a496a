"""A server's data for the web workbench: a project with a history of several people and agents, and what waits."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.support.scripted_model import script
from tests.support.workbench_people import made_people_and_apps

__all__ = ["HOSTILE_NAME", "HOSTILE_TEXT", "WorkbenchWorld", "made_workbench_world"]

HOSTILE_NAME = "<img src=x onerror=window.hacked=1>&\"'`{{x}}%2e#?.md"
HOSTILE_TEXT = "<script>window.hacked=1</script>\n[x](javascript:window.hacked=1)\n<svg onload=window.hacked=1>\n"
_PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFUlEQVR4nGNgkN+MFTEMLYn/WNDQkgAAZ0Rt4R5iNTkAAAAASUVORK5CYII="
)
_PATIENCE = 120.0
_STEPS: tuple[dict[str, Any], ...] = (
    {"reasoning": "The date stands in the plan, and the terms name July already."},
    {"text": "The date appears in three places: the schedule, the budget and an interview. I look first."},
    {"tool": "bash", "input": {"command": "ls; cat budget.md", "description": "Look around"}},
    {"tool": "edit", "input": {"path": "budget.md", "old": "Travel: 500", "new": "Travel: 700"}},
    {"tool": "edit", "input": {"path": "schedule.md", "old": "Launch: May", "new": "Launch: July, after the audit"}},
    {"tool": "edit", "input": {"path": "research/20.md", "old": "Notes 20", "new": "Notes 20\nLaunch: July"}},
    {"tool": "write", "input": {"path": "pricing/july.csv", "content": "item,price\nbasic,12\npro,32\n"}},
    {"tool": "read", "input": {"path": "missing.md"}},
    {
        "text": "I changed two files and added **pricing/july.csv**:\n\n| item | May | July |\n|---|---|---|\n"
        "| basic | 10 | 12 |\n| pro | 30 | 32 |\n\n- The audit ends on 30 June.\n- Beta stays in spring."
    },
)
_SCHEDULE = "# Schedule\n\nBeta: April\n\nAudit: June\n\nLaunch: May\n"
_PLAN = ["# Plan", "", "## Timeline", "We launch in May.", "Beta starts in spring.", "", "Ben tests.", ""]


@dataclass(frozen=True, kw_only=True)
class WorkbenchWorld:
    url: str
    owner: str  # a token
    reader: str  # one that may only read
    data: Path


class _Writer:
    def __init__(self, url: str, token: str, project: str) -> None:
        self._client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        self._project = project

    def commit(self, base: int, message: str, *changes: dict[str, Any]) -> dict[str, Any]:
        body = {"project": self._project, "base_seq": base, "message": message, "changes": list(changes)}
        answer = self._client.post("/api/v1/commits", json=body)
        answer.raise_for_status()
        made: dict[str, Any] = answer.json()
        return made

    def close(self) -> None:
        self._client.close()


def _write(path: str, text: str) -> dict[str, Any]:
    return {"action": "write", "path": path, "text": text}


def _plan(**lines: str) -> str:
    changed = [lines.get(f"line{number}", line) for number, line in enumerate(_PLAN, 1)]
    return "\n".join(changed)


def made_workbench_world(url: str, owner: str, data: Path) -> WorkbenchWorld:
    headers = {"Authorization": f"Bearer {owner}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60) as client:

        def post(route: str, **body: Any) -> dict[str, Any]:
            answer = client.post(f"/api/v1/{route}", json=body)
            answer.raise_for_status()
            made: dict[str, Any] = answer.json()
            return made

        post("projects", name="notes", description="Plans, prices and research of the spring launch")
        post("projects", name="empty", description="")
        post("projects", name="handbook", description="How we work")
        secrets = {
            name: post("tokens", principal=name, kind=kind)["secret"]
            for name, kind in (("ann", "user"), ("ben", "user"), ("planner", "agent"), ("launch", "agent"))
        }
        reader = post("tokens", principal="carl", kind="user", actions=["read"])["secret"]
        writers = {name: _Writer(url, secret, "notes") for name, secret in secrets.items()}
        try:
            _history(writers)
        finally:
            for writer in writers.values():
                writer.close()
        rule = {"project": "notes", "subject": "agent:launch", "pattern": "legal/**", "level": "R"}
        client.put("/api/v1/policies/rules", json=rule).raise_for_status()
        workspace = httpx.post(
            f"{url}/api/v1/workspaces",
            json={"project": "notes"},
            headers={"Authorization": f"Bearer {secrets['planner']}"},
            timeout=60,
        )
        workspace.raise_for_status()
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secrets['ann']}"}, timeout=60) as ann:
            _conversation(client, ann)
        made_people_and_apps(client)
    return WorkbenchWorld(url=url, owner=owner, reader=reader, data=data)


def _conversation(owner: httpx.Client, ann: httpx.Client) -> None:
    """An agent and Ann change the same files: some is merged, and some waits."""
    body = {"project": "notes", "provider": "scripted", "land": "after_review", "title": "Move the launch to July"}
    session = _asked(owner, "POST", "/api/v1/sessions", json=body)["id"]
    run = _asked(owner, "POST", f"/api/v1/sessions/{session}/runs", json={"message": script(*_STEPS)})["id"]
    deadline = time.monotonic() + _PATIENCE
    while (state := _asked(owner, "GET", f"/api/v1/runs/{run}")["state"]) != "succeeded":
        assert state not in {"failed", "canceled"}, state
        assert time.monotonic() < deadline, state
        time.sleep(0.1)
    head = _asked(owner, "GET", "/api/v1/projects/notes")["head"]
    changes = [
        _write("budget.md", "# Budget\n\nPrint: 200\n\nTravel: 900\n"),
        _write("schedule.md", _SCHEDULE.replace("Beta: April", "Beta: 2 June")),
    ]
    _asked(ann, "POST", "/api/v1/commits", json={"project": "notes", "base_seq": head, "changes": changes})
    _asked(owner, "POST", f"/api/v1/sessions/{session}/land")


def _asked(client: httpx.Client, method: str, path: str, **options: Any) -> dict[str, Any]:
    answer = client.request(method, path, **options)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def _history(writers: dict[str, _Writer]) -> None:
    ann, ben, planner, launch = (writers[name] for name in ("ann", "ben", "planner", "launch"))
    shop = '{\n  "currency": "EUR",\n  "rounding": 2,\n  "open": true\n}\n'
    first = ann.commit(
        0,
        "Start the plan",
        _write("plan.md", _plan()),
        _write("shop.json", shop),
        _write("budget.md", "# Budget\n\nPrint: 200\n\nTravel: 500\n"),
        _write("schedule.md", _SCHEDULE),
        _write("legal/terms.md", "# Terms\n\nJuly is named here.\n"),
        _write("pricing/v1.csv", "item,price\nbasic,10\npro,30\n"),
        _write("research/interviews/anna.md", "# Anna\n\nWants fewer tools.\n"),
        _write("src/prices.py", "def price(item: str) -> int:\n    return {'basic': 10, 'pro': 30}[item]\n"),
        {"action": "write", "path": "logo.png", "base64": _PICTURE},
        {"action": "write", "path": "data.bin", "base64": "AAECAwQ="},
        _write(HOSTILE_NAME, HOSTILE_TEXT),
        _write("中文/说明.md", "# 说明\n\n发布计划在五月。\n"),
    )["seq"]
    for number in range(1, 25):
        planner.commit(
            first + number - 1, f"Interview {number}", _write(f"research/{number:02}.md", f"Notes {number}\n")
        )
    base = first + 24
    # Two writers at different places: merged. Then at one place: it waits.
    ben.commit(base, "Carl joins testing", _write("plan.md", _plan(line7="Ben and Carl test.")))
    launch.commit(base, "Beta on 2 June", _write("plan.md", _plan(line5="Beta starts on 2 June.")))
    ann.commit(
        base,
        "Launch in June",
        _write(
            "plan.md", _plan(line4="We launch in June.", line5="Beta starts on 2 June.", line7="Ben and Carl test.")
        ),
    )
    launch.commit(
        base, "Move the launch to July", _write("plan.md", _plan(line4="We launch in July, after the audit."))
    )
    ann.commit(base, "Pounds", _write("shop.json", shop.replace("EUR", "GBP").replace("2", "3")))
    launch.commit(base, "Dollars", _write("shop.json", shop.replace("EUR", "USD").replace("2", "0")))
    for number in range(1, 4):
        ann.commit(base, f"Ann's list {number}", _write(f"lists/{number}.md", f"a{number}\n"))
    for number in range(1, 4):
        launch.commit(base, f"Launch's list {number}", _write(f"lists/{number}.md", f"b{number}\n"))
