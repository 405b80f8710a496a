"""Logging in and out: with a password, with a link, with a token; and what attackers try."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from tests.support.api import BROKEN_ROUTES, Api, assert_problem

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"
PASSWORD = "correct horse battery"


@asynccontextmanager
async def a_browser(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(api.app, client=(f"10.0.0.{uuid4().int % 250}", 1))
    headers = {"Origin": "http://api"}
    async with httpx.AsyncClient(transport=transport, base_url="http://api", headers=headers) as browser:
        yield browser


async def a_person(api: Api, password: str | None = PASSWORD) -> str:
    slug = f"l-{uuid4().hex[:10]}"
    assert (await api.client.post(f"{API}/users", json={"login_name": slug})).status_code == 201
    if password is not None:
        async with a_browser(api) as browser:
            answer = await browser.post("/login", json={"link": await a_link(api, slug), "password": password})
            assert answer.status_code == 204, answer.text
    return slug


async def a_link(api: Api, slug: str, kind: str = "invitation") -> str:
    made = await api.client.post(f"{API}/users/{slug}/{kind}")
    assert made.status_code == 201, made.text
    return str(made.json()["url"]).partition("#link=")[2]


async def log_in(browser: httpx.AsyncClient, slug: str, password: str = PASSWORD) -> httpx.Response:
    return await browser.post("/login", json={"login_name": slug, "password": password})


async def who(browser: httpx.AsyncClient) -> str | None:
    answer = await browser.get(f"{API}/me")
    return str(answer.json()["principal"]) if answer.status_code == 200 else None


async def test_a_person_logs_in_with_the_password_that_the_invitation_let_them_choose(api: Api) -> None:
    slug = await a_person(api, None)
    link = await a_link(api, slug)
    async with a_browser(api) as browser:
        assert_problem(await browser.post("/login", json={"link": link, "password": "short"}), 400, "invalid_input")
        answer = await browser.post("/login", json={"link": link, "password": PASSWORD})
        assert answer.status_code == 204
        assert re.search(r"HttpOnly; .*SameSite=strict", answer.headers["set-cookie"])
        assert await who(browser) == slug
        again = await browser.post("/login", json={"link": link, "password": PASSWORD})
        assert_problem(again, 401, "unauthenticated")
    async with a_browser(api) as browser:
        assert (await log_in(browser, slug.upper())).status_code == 204
        assert await who(browser) == slug


async def test_a_new_link_ends_the_one_before(api: Api) -> None:
    slug = await a_person(api, None)
    old, _ = await a_link(api, slug), await a_link(api, slug)
    async with a_browser(api) as browser:
        assert_problem(await browser.post("/login", json={"link": old, "password": PASSWORD}), 401, "unauthenticated")


async def test_every_way_to_fail_looks_the_same(api: Api) -> None:
    """Nobody learns which names exist: not from the text, not from the work that is done."""
    disabled, service = await a_person(api), f"s-{uuid4().hex[:8]}"
    await api.client.patch(f"{API}/users/{disabled}", json={"disabled": True})
    assert (await api.client.post(f"{API}/users", json={"login_name": service, "service": True})).status_code == 201
    tries = [
        (await a_person(api), "wrong password"),
        (await a_person(api, None), PASSWORD),
        (f"nobody-{uuid4().hex}", PASSWORD),
        (disabled, PASSWORD),
        (service, PASSWORD),
    ]
    hashing = api.services.people.passwords.hashing
    verified: list[str] = []
    verify = hashing._verified

    def counted(stored: str, password: str) -> bool:
        verified.append(stored.split("$")[3])
        return verify(stored, password)

    hashing._verified = counted  # type: ignore[method-assign]
    try:
        answers = []
        for name, password in tries:
            async with a_browser(api) as browser:
                answer = await log_in(browser, name, password)
                answers.append(assert_problem(answer, 401, "unauthenticated")["detail"])
                assert "set-cookie" not in answer.headers
    finally:
        hashing._verified = verify  # type: ignore[method-assign]
    assert len(set(answers)) == 1
    assert len(verified) == len(tries)
    assert len(set(verified)) == 1, "each costs the same"


async def test_guessing_is_slowed_down_alike_for_names_that_exist_and_names_that_do_not(api: Api) -> None:
    for name in (await a_person(api), f"nobody-{uuid4().hex}"):
        for _ in range(5):
            async with a_browser(api) as browser:
                assert_problem(await log_in(browser, name, "wrong password"), 401, "unauthenticated")
        async with a_browser(api) as browser:
            locked = assert_problem(await log_in(browser, name), 429, "too_many_attempts")
            assert 0 < locked["details"]["retry_after_seconds"] <= 3


async def test_attempts_at_the_same_time_get_no_more_guesses(api: Api) -> None:
    slug = await a_person(api)

    async def attempt() -> int:
        async with a_browser(api) as browser:
            return (await log_in(browser, slug, "wrong password")).status_code

    answers = await asyncio.gather(*(attempt() for _ in range(12)))
    assert answers.count(401) == 5
    assert answers.count(429) == 7


async def test_the_right_password_forgives_what_failed_before(api: Api) -> None:
    slug = await a_person(api)
    for _ in range(2):
        async with a_browser(api) as browser:
            for _ in range(4):
                assert (await log_in(browser, slug, "wrong password")).status_code == 401
            assert (await log_in(browser, slug)).status_code == 204


async def test_a_cookie_is_no_good_after_logging_out(api: Api) -> None:
    slug = await a_person(api)
    async with a_browser(api) as browser:
        await log_in(browser, slug)
        stolen = browser.cookies["contextbase_login"]
        assert (await browser.post("/logout", json={})).status_code == 204
        assert await who(browser) is None
        browser.cookies.set("contextbase_login", stolen, domain="api.local")
        assert await who(browser) is None


async def test_logging_out_everywhere_ends_every_browser(api: Api) -> None:
    slug = await a_person(api)
    async with a_browser(api) as one, a_browser(api) as two:
        await log_in(one, slug)
        await log_in(two, slug)
        assert (await one.post("/logout", json={"everywhere": True})).status_code == 204
        assert await who(one) is None
        assert await who(two) is None


async def test_a_cookie_that_was_there_before_never_becomes_somebodys_login(api: Api) -> None:
    """Fixation: an attacker puts a cookie into a browser, and waits for somebody to log in there."""
    victim, attacker = await a_person(api), await a_person(api)
    async with a_browser(api) as evil, a_browser(api) as browser:
        await log_in(evil, attacker)
        browser.cookies.set("contextbase_login", evil.cookies["contextbase_login"], domain="api.local")
        await log_in(browser, victim)
        assert await who(browser) == victim
        assert browser.cookies["contextbase_login"] != evil.cookies["contextbase_login"]
        assert await who(evil) is None
        evil.cookies.set("contextbase_login", "made-up-by-the-attacker", domain="api.local")
        assert await who(evil) is None


async def test_a_changed_password_ends_the_other_browsers_and_the_old_one_is_wrong(api: Api) -> None:
    slug, new = await a_person(api), "another horse battery"
    async with a_browser(api) as browser, a_browser(api) as other:
        await log_in(browser, slug)
        await log_in(other, slug)
        wrong = await browser.put(f"{API}/me/password", json={"old": "wrong password", "new": new})
        assert_problem(wrong, 401, "unauthenticated")
        assert (await browser.put(f"{API}/me/password", json={"old": PASSWORD, "new": new})).json() == {"ended": 2}
        assert await who(browser) == slug
        assert await who(other) is None
        assert (await log_in(other, slug)).status_code == 401
        assert (await log_in(other, slug, new)).status_code == 204


async def test_a_reset_ends_everything_and_the_link_starts_again(api: Api) -> None:
    slug = await a_person(api)
    async with a_browser(api) as browser:
        await log_in(browser, slug)
        link = await a_link(api, slug, "password-reset")
        assert await who(browser) is None
        assert (await log_in(browser, slug)).status_code == 401
        assert (await browser.post("/login", json={"link": link, "password": "a third password"})).status_code == 204
        assert await who(browser) == slug


async def test_a_disabled_person_is_out_of_the_browser_at_once(api: Api) -> None:
    slug = await a_person(api)
    async with a_browser(api) as browser:
        await log_in(browser, slug)
        await api.client.patch(f"{API}/users/{slug}", json={"disabled": True})
        assert await who(browser) is None


async def test_a_login_with_a_token_ends_with_the_token_and_never_shows_it(api: Api) -> None:
    made = await api.token(principal="browser-token", kind="user", actions=["read"])
    async with a_browser(api) as browser:
        answer = await browser.post("/login", json={"token": made["secret"]})
        assert made["secret"] not in answer.headers["set-cookie"]
        assert await who(browser) == "browser-token"
        assert (await api.client.delete(f"{API}/tokens/{made['id']}")).status_code == 200
        assert await who(browser) is None


async def test_the_cookie_is_replaced_in_time_and_the_one_before_is_good_for_a_moment(api: Api) -> None:
    slug = await a_person(api)
    database = api.services.database

    async def age(minutes: int) -> None:
        async with database.connection() as connection:
            await connection.execute(
                "UPDATE browser_logins SET rotated_at = rotated_at - make_interval(mins => $1) "
                "WHERE principal_id = (SELECT id FROM principals WHERE name = $2 AND kind = 'user')",
                minutes, slug,
            )  # fmt: skip
        api.services.people.logins.forget()

    async with a_browser(api) as browser:
        await log_in(browser, slug)
        first = browser.cookies["contextbase_login"]
        assert await who(browser) == slug
        assert browser.cookies["contextbase_login"] == first
        await age(16)
        assert await who(browser) == slug
        second = browser.cookies["contextbase_login"]
        assert second != first
        async with a_browser(api) as late:
            late.cookies.set("contextbase_login", first, domain="api.local")
            assert await who(late) == slug
            await age(2)
            assert await who(late) is None, "replayed later, it is no good"
        assert await who(browser) == slug
        await age(8 * 24 * 60)
        assert await who(browser) is None, "a week without use"


def routes_that_change(api: Api) -> list[tuple[str, str]]:
    found = {
        (method, context.path or "")
        for context in iter_route_contexts(api.app.routes)
        for method in context.methods or ()
        if method not in {"GET", "HEAD", "OPTIONS"}
    }
    return sorted(one for one in found if one[1] not in BROKEN_ROUTES)


async def test_no_route_changes_anything_for_a_page_of_another_site(api: Api) -> None:
    slug = await a_person(api)
    await api.client.put(f"{API}/roles/bindings", json={"user": slug, "role": "platform_admin", "scope": "platform"})
    tried = 0
    async with a_browser(api) as browser:
        await log_in(browser, slug)
        for method, path in routes_that_change(api):
            place = re.sub(r"\{[^}]+\}", "x", path)
            for origin in ("http://evil.example", "null"):
                options: dict[str, Any] = {"headers": {"Origin": origin}, "json": {}}
                answer = await browser.request(method, place, **options)
                assert answer.status_code in {401, 403}, (method, path, answer.text)
                tried += 1
        assert await who(browser) == slug
    assert tried > 100


async def test_no_web_socket_opens_for_a_page_of_another_site(api: Api) -> None:
    """Browsers let any page open one, and send the cookie along."""
    places = [context.path or "" for context in iter_route_contexts(api.app.routes) if not context.methods]
    assert len(places) >= 2
    for path in places:
        for origin, expected in (("http://evil.example", 403), ("null", 403), ("http://api", 404)):
            place = re.sub(r"\{[^}]+\}", str(uuid4()), path)
            headers = {"host": "api", "origin": origin, "cookie": await api.login_cookie()}
            assert await refused_socket(api, place, headers) == expected, (path, origin)


async def refused_socket(api: Api, path: str, headers: dict[str, str]) -> int:
    """The status that it is refused with."""
    answered: list[dict[str, Any]] = []
    scope = {
        "type": "websocket", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()], "scheme": "ws",
        "server": ("api", 80), "client": ("10.1.1.1", 1), "subprotocols": [], "asgi": {"version": "3.0"},
        "extensions": {"websocket.http.response": {}},
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        answered.append(message)

    await api.app(scope, receive, send)
    assert answered[0]["type"] == "websocket.http.response.start", answered
    return int(answered[0]["status"])


async def test_each_further_failure_waits_longer_and_then_the_right_password_is_taken(api: Api) -> None:
    slug = await a_person(api)

    async def wait_out(seconds: float) -> None:
        async with api.services.database.connection() as connection:
            await connection.execute(
                "UPDATE login_failures SET failed_at = failed_at - make_interval(secs => $1)", seconds
            )

    async def failed() -> httpx.Response:
        async with a_browser(api) as browser:
            return await log_in(browser, slug, "wrong password")

    for _ in range(5):
        assert (await failed()).status_code == 401
    waits = []
    for _ in range(12):
        waits.append(assert_problem(await failed(), 429, "too_many_attempts")["details"]["retry_after_seconds"])
        await wait_out(waits[-1])
        assert (await failed()).status_code == 401
    assert waits[0] <= 2
    assert 400 < waits[8] < max(waits) <= 15 * 60  # twice as long each time, up to a quarter of an hour
    async with a_browser(api) as browser:
        assert (await log_in(browser, slug)).status_code == 429, "the right password is not looked at"
        await wait_out(15 * 60 + 1)
        assert (await log_in(browser, slug)).status_code == 204


async def test_the_owner_may_log_in_with_a_password_and_nobody_else_resets_it(api: Api) -> None:
    slug = await a_person(api)
    await api.client.put(f"{API}/roles/bindings", json={"user": slug, "role": "platform_admin", "scope": "platform"})
    async with a_browser(api) as admin:
        await log_in(admin, slug)
        for way in ("invitation", "password-reset", "logout"):
            assert_problem(await admin.post(f"{API}/users/owner/{way}"), 403, "forbidden")
    async with a_browser(api) as browser:
        link = await a_link(api, "owner")
        assert (await browser.post("/login", json={"link": link, "password": PASSWORD})).status_code == 204
        assert (await browser.get(f"{API}/me")).json()["is_owner"] is True
