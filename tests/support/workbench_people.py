"""People, departments, roles and apps for the web workbench's world."""

from typing import Any

import httpx

from contextbase.interfaces.cli.app_example import example_files, example_manifest

__all__ = ["PASSWORD", "made_people_and_apps"]

PASSWORD = "a long enough password"
_PEOPLE = (
    ("dora", "Dora Lind", "sales"),
    ("emil", "Emil Noor", "sales"),
    ("fay", "Fay Osei", "research"),
    ("gus", "Gus Park", None),
)
_CONFIG: dict[str, Any] = {
    "provider": "scripted",
    "profile": "default",
    "system_prompt": "You help the sales team. Write short sentences, and name the file you changed.",
    "limits": {"seconds": 900},
    "environment": {"CRM_TOKEN": {"secret": "crm-token"}, "REGION": "north"},
    "skills": ["pricing", "letters"],
}


def made_people_and_apps(client: httpx.Client) -> None:
    """Dora and Emil sell, Fay does research, Gus is out. The helper is shown to members, the archive to nobody yet."""
    for name, title in (("sales", "Sales"), ("research", "Research"), ("legal", "Legal")):
        _ask(client, "POST", "departments", json={"name": name, "title": title})
    for name, shown, department in _PEOPLE:
        account = {"login_name": name, "display_name": shown, "email": f"{name}@example.com", "department": department}
        _ask(client, "POST", "users", json=account)
    _ask(client, "POST", "users", json={"login_name": "nightly", "display_name": "Nightly import", "service": True})
    _ask(client, "PATCH", "users/gus", json={"disabled": True})
    link = _ask(client, "POST", "users/dora/invitation")["url"].partition("#link=")[2]
    origin = str(client.base_url).rstrip("/")
    chosen = httpx.post(
        f"{origin}/login",
        json={"link": link, "password": PASSWORD},
        headers={"Origin": origin, "Accept": "application/json"},
        timeout=60,
    )
    chosen.raise_for_status()
    for app, title, description in (
        ("helper", "Sales helper", "Writes offers and letters from the price list, in the words of the handbook."),
        ("archive", "Archive", "Finds what was decided in old projects."),
    ):
        _ask(client, "POST", "apps", json={"name": app, "title": title, "description": description})
    _ask(client, "PATCH", "apps/archive", json={"enabled": False})
    _ask(client, "PUT", "apps/helper/visibility", json={"departments": ["sales"], "roles": [], "members": []})
    _ask(client, "PUT", "apps/archive/visibility", json={"roles": ["member"], "departments": [], "members": []})
    _ask(client, "PUT", "apps/helper/projects", json={"name": "north", "description": "Offers of the northern team"})
    _ask(client, "PUT", "roles/bindings", json={"user": "emil", "role": "app_admin", "scope": "app:helper"})
    _ask(client, "PUT", "roles/bindings", json={"user": "fay", "role": "project_admin", "scope": "project:notes"})
    for path, text in example_files().items():
        changes = [{"action": "write", "path": path, "text": text}]
        _ask(client, "POST", "commits", json={"project": "app-helper", "base_seq": 0, "changes": changes})
    manifest = example_manifest("helper")
    _ask(client, "POST", "apps/helper/manifests", json=manifest)
    newer = manifest | {"runtimeVersion": "2", "conflictPolicy": "merge", "cleanupRules": []}
    _ask(client, "POST", "apps/helper/manifests", json=newer)
    _ask(client, "PUT", "apps/helper/configs/app", json=_CONFIG)
    _ask(client, "PUT", "apps/helper/configs/project", json={"limits": {"seconds": 300}, "landing": "after_review"})
    _ask(client, "PUT", "apps/helper/configs/user", json={"environment": {"REGION": "south"}})
    _ask(client, "PUT", "apps/helper/secrets/app/crm-token", json={"value": "not to be seen"})
    for layer, name, description, tags in (
        ("app", "handbook", "How we write", ["style", "letters"]),
        ("project", "prices", "The price list of this year", ["prices"]),
        ("user", "notes", "What I look up often", ["letters"]),
    ):
        base = {"description": description, "tags": tags}
        _ask(client, "PUT", f"apps/helper/knowledge-bases/{layer}/{name}", json=base)
    budget = {"scope": "user", "subject": "user:dora", "monthly_limit": 50_000_000}
    _ask(client, "PUT", "model-budgets", json=budget)


def _ask(client: httpx.Client, method: str, path: str, **options: Any) -> dict[str, Any]:
    answer = client.request(method, f"/api/v1/{path}", **options)
    assert answer.is_success, (path, answer.text)
    found: dict[str, Any] = answer.json()
    return found
