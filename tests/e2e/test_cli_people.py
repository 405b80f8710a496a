"""`contextbase user`, `department` and `role`, `session share`, and what `policy explain` says of roles."""

import os
from uuid import uuid4

import httpx
import pytest
from tests.support.cli import Cli
from tests.support.require import require_root

from contextbase.sdk import Client

pytestmark = pytest.mark.xdist_group("cli")


def a_person(cb: Cli, *options: str) -> str:
    slug = f"p-{uuid4().hex[:10]}"
    made = cb("user", "create", slug, "--json", *options)
    assert made.json["slug"] == slug
    return slug


def log_in(cb: Cli, link: str) -> None:
    """Choose a password by a link, in a browser that stays logged in."""
    url = cb("status", "--json").json["url"]
    body = {"link": link.partition("/#link=")[2], "password": f"long enough {uuid4().hex}"}
    answer = httpx.post(f"{url}/login", json=body, headers={"Origin": url})
    assert answer.is_success, answer.text


def test_an_account_from_its_making_to_its_end(cb: Cli) -> None:
    department = f"d-{uuid4().hex[:8]}"
    assert cb("department", "create", department, "--title", "Sales", "--json").json["name"] == department
    slug = a_person(cb, "--name", "Ada", "--email", f"{uuid4().hex}@example.com", "--department", department)
    assert slug in cb("user", "list").stdout
    assert [each["slug"] for each in cb("user", "list", "--department", department, "--json").json] == [slug]
    assert cb("user", "change", slug, "--name", "Ada L.", "--json").json["display_name"] == "Ada L."
    shown = cb("user", "show", slug, "--json").json
    assert [(each["role"], each["scope"]) for each in shown["roles"]] == [("member", "platform")]
    invited = cb("user", "invite", slug, "--json").json["url"]
    log_in(cb, invited)
    assert cb("user", "logout", slug, "--json").json == {"ended": 1}
    assert cb("user", "logout", slug, "--json").json == {"ended": 0}
    again = cb("user", "reset-password", slug, "--json").json["url"]
    assert invited != again
    log_in(cb, again)
    assert cb("user", "identities", slug, "--json").json == []
    assert "not linked" in cb("user", "identities", slug).stdout
    refused = cb("user", "unlink", slug, "https://login.example.com", "--json").error
    assert refused["code"] == "not_found", refused
    assert cb("user", "disable", slug, "--json").json["disabled"] is True
    assert "disabled" in cb("user", "show", slug).stdout
    assert cb("user", "enable", slug, "--json").json["disabled"] is False
    assert cb("user", "show", "nobody-here", "--json").error["code"] == "not_found"
    assert cb("department", "delete", department, "--json").error["code"] == "conflict"
    assert cb("user", "change", slug, "--department", "").code == 0
    assert cb("department", "rename", department, "Shop", "--json").json["title"] == "Shop"
    assert department in cb("department", "list").stdout
    assert cb("department", "delete", department).code == 0


def test_roles_are_given_listed_explained_and_taken_away(cb: Cli) -> None:
    slug, project = a_person(cb, "--no-apps"), os.environ["CONTEXTBASE_PROJECT"]
    scope = f"project:{project}"
    hidden = cb("policy", "explain", "a.md", "--as", f"user:{slug}", "--json").json
    assert (hidden["level"], hidden["roles"]) == ("hidden", [])
    assert cb("role", "grant", slug, "member", scope, "--json").json["changed"] is True
    assert [each["role"] for each in cb("role", "list", "--user", slug, "--json").json] == ["member"]
    assert slug in cb("role", "list", "--scope", scope).stdout
    explained = cb("role", "explain", slug, "edit_files", scope, "--json").json
    assert explained["allowed"] is True
    assert "may do this" in cb("role", "explain", slug, "edit_files", scope).stdout
    path = cb("policy", "explain", "a.md", "--as", f"user:{slug}")
    assert "role: member in project  gives browse_files edit_files read use_app write" in path.stdout
    assert cb("role", "revoke", slug, "member", scope, "--json").json["changed"] is True
    assert "may not" in cb("role", "explain", slug, "edit_files", scope).stdout
    described = cb("role", "describe", "--json").json
    assert {each["role"] for each in described} == {"platform_admin", "app_admin", "project_admin", "member"}
    assert cb("role", "grant", slug, "king", scope, "--json").error["code"] == "invalid_input"


def test_a_session_is_shared_listed_by_the_guest_and_taken_back(cb: Cli) -> None:
    require_root()
    owner, guest, project = a_person(cb), a_person(cb), os.environ["CONTEXTBASE_PROJECT"]
    secrets = {}
    for slug in (owner, guest):
        assert cb("role", "grant", slug, "member", f"project:{project}").code == 0
        made = cb("token", "create", slug, "--kind", "user", "--json")
        secrets[slug] = made.json["secret"]
    url = cb("status", "--json").json["url"]
    with Client(url, secrets[owner]) as client:
        session = str(client.sessions.create(project, provider="scripted", title="Shared").id)
    as_owner, as_guest = [{"CONTEXTBASE_URL": url, "CONTEXTBASE_TOKEN": secrets[slug]} for slug in (owner, guest)]
    assert cb("session", "show", session, **as_guest).code != 0
    shared = cb("session", "share", session, guest, "--json", **as_owner).json
    assert [(each["user"], each["level"]) for each in shared] == [(guest, "read")]
    assert cb("session", "share", session, guest, "--drive", **as_owner).code == 0
    assert "drive" in cb("session", "shares", session, **as_owner).stdout
    assert [each["id"] for each in cb("session", "list", "--shared", "--json", **as_guest).json] == [session]
    assert cb("session", "list", "--json", **as_guest).json == []
    assert "Shared" in cb("session", "show", session, **as_guest).stdout
    nobody = cb("session", "share", session, "nobody-here", "--json", **as_owner)
    assert nobody.error["code"] == "not_found"
    assert cb("session", "unshare", session, guest, **as_owner).code == 0
    assert cb("session", "list", "--shared", "--json", **as_guest).json == []
