"""Logging in by a provider (OpenID Connect), a real one over HTTP, and what a lying provider or a thief tries."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from joserfc.jwk import RSAKey
from tests.support.api import Api, opened_api, url_of
from tests.support.openid_provider import FakeOpenIdProvider, opened_openid_provider, unsigned, with_secret
from tests.support.postgres import database_copy

from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.identity.logins import openid_repository
from contextbase.identity.logins.openid_provider import OpenIdClient

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"
World = tuple[Api, FakeOpenIdProvider]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(
    embedded_database_server: DatabaseAddress, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    with opened_openid_provider() as provider:
        async with database_copy(embedded_database_server, "template0") as address:
            settings = Settings(
                data=tmp_path_factory.mktemp("data"),
                database_url=url_of(address),
                oidc_issuer=provider.issuer,
                oidc_client_id=provider.client_id,
                oidc_client_secret=provider.client_secret,
                oidc_name="Example",
                oidc_create_people=True,
            )
            async with opened_api(settings) as api:
                yield api, provider


@pytest.fixture
def world(opened: World) -> World:
    """A provider that tells the truth again, about somebody new."""
    opened[1].honest()
    opened[1].person = {"sub": uuid4().hex, "preferred_username": f"o-{uuid4().hex[:8]}"}
    return opened


@asynccontextmanager
async def a_browser(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api.app), base_url="http://api.example") as browser:
        yield browser


async def sent_back(browser: httpx.AsyncClient, then: str = "/") -> str:
    """Begin a login, agree at the provider, and come back as far as the address that the provider sends."""
    begun = await browser.get("/login/oidc", params={"then": then})
    assert begun.status_code == 303, begun.text
    async with httpx.AsyncClient() as outside:
        agreed = await outside.get(begun.headers["location"])
    return agreed.headers["location"]


async def log_in(browser: httpx.AsyncClient, then: str = "/") -> httpx.Response:
    return await browser.get(await sent_back(browser, then))


async def who(browser: httpx.AsyncClient) -> str | None:
    answer = await browser.get(f"{API}/me")
    return str(answer.json()["principal"]) if answer.status_code == 200 else None


async def assert_refused(browser: httpx.AsyncClient, answer: httpx.Response, status: int = 401) -> None:
    assert answer.status_code == status, answer.text
    assert "contextbase_login" not in browser.cookies
    assert await who(browser) is None


async def test_the_login_page_knows_the_provider(world: World) -> None:
    assert (await world[0].stranger.get("/login/ways")).json() == {"oidc": "Example"}


async def test_somebody_new_gets_an_account_and_is_the_same_person_ever_after(world: World) -> None:
    api, provider = world
    provider.person |= {"name": "Olga", "email": f"{uuid4().hex}@example.com", "email_verified": True}
    async with a_browser(api) as browser:
        answer = await log_in(browser, "/projects?x=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/projects?x=1")
        assert "contextbase_attempt" not in browser.cookies
        slug = await who(browser)
        assert slug == provider.person["preferred_username"]
        user = (await browser.get(f"{API}/users/{slug}")).json()
        assert (user["display_name"], user["email"]) == ("Olga", provider.person["email"])
    # The subject decides, whatever else the provider says of the person now.
    provider.person |= {"preferred_username": "owner", "email": "other@example.com"}
    async with a_browser(api) as browser:
        await log_in(browser)
        assert await who(browser) == slug


async def test_a_name_at_the_provider_never_becomes_somebody_who_is_here(world: World) -> None:
    api, provider = world
    taken = f"taken-{uuid4().hex[:8]}"
    await api.token(principal=taken, kind="agent", actions=["read"])
    for name in (taken, "owner"):
        provider.person |= {"sub": uuid4().hex, "preferred_username": name}
        async with a_browser(api) as browser:
            await log_in(browser)
            assert await who(browser) == f"{name}-2"
            assert (await browser.get(f"{API}/me")).json()["is_owner"] is False


async def test_an_e_mail_address_links_an_account_only_when_the_provider_verified_it(world: World) -> None:
    api, provider = world
    slug, email = f"e-{uuid4().hex[:8]}", f"{uuid4().hex}@example.com"
    made = await api.client.post(f"{API}/users", json={"login_name": slug, "email": email})
    assert made.status_code == 201
    for verified in (False, "true", 1, None):
        provider.person = {"sub": uuid4().hex, "preferred_username": f"x-{slug}", "email": email}
        provider.person |= {} if verified is None else {"email_verified": verified}
        async with a_browser(api) as browser:
            await log_in(browser)
            found = await who(browser)
            assert found is not None
            assert found.startswith(f"x-{slug}")
    provider.person = {"sub": uuid4().hex, "email": email.upper(), "email_verified": True}
    async with a_browser(api) as browser:
        await log_in(browser)
        assert await who(browser) == slug
    # Once linked, another subject with the same address is somebody else.
    provider.person |= {"sub": uuid4().hex, "preferred_username": "late"}
    async with a_browser(api) as browser:
        await log_in(browser)
        assert await who(browser) == "late"


async def test_without_the_setting_strangers_get_no_account(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    api, provider = world
    assert api.services.people.openid is not None
    closed = OpenIdClient(
        issuer=provider.issuer, client_id=provider.client_id, client_secret=provider.client_secret, name="Example"
    )
    monkeypatch.setattr(api.services.people.openid.provider, "client", closed)
    async with a_browser(api) as browser:
        await assert_refused(browser, await log_in(browser), 403)
    users = await api.client.get(f"{API}/users/{provider.person['preferred_username']}")
    assert users.status_code == 404


async def test_a_new_start_forgets_who_somebody_is_at_the_provider(world: World) -> None:
    api, _ = world
    async with a_browser(api) as browser:
        await log_in(browser)
        slug = await who(browser)
        assert (await api.client.post(f"{API}/users/{slug}/password-reset")).status_code == 201
        assert await who(browser) is None
    async with a_browser(api) as browser:
        await log_in(browser)
        assert await who(browser) == f"{slug}-2", "the provider did not verify an address"


async def test_logins_that_were_begun_and_left_do_not_pile_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    api, _ = world
    monkeypatch.setattr(openid_repository, "_MOST_ATTEMPTS", 3)
    async with a_browser(api) as browser:
        statuses = [(await browser.get("/login/oidc")).status_code for _ in range(4)]
        assert statuses[-1] == 429
        async with api.services.database.connection() as connection:
            await connection.execute("UPDATE openid_attempts SET expires_at = now() - interval '1 second'")
        assert (await browser.get("/login/oidc")).status_code == 303


async def test_a_disabled_person_is_refused(world: World) -> None:
    api, _ = world
    async with a_browser(api) as browser:
        await log_in(browser)
        slug = await who(browser)
        await api.client.patch(f"{API}/users/{slug}", json={"disabled": True})
        assert await who(browser) is None
    async with a_browser(api) as browser:
        await assert_refused(browser, await log_in(browser), 403)


LIES: dict[str, Callable[[FakeOpenIdProvider, dict[str, Any]], dict[str, Any]]] = {
    "another issuer": lambda _, claims: claims | {"iss": "https://evil.example"},
    "no issuer": lambda _, claims: {name: value for name, value in claims.items() if name != "iss"},
    "another audience": lambda _, claims: claims | {"aud": "another program"},
    "no audience": lambda _, claims: {name: value for name, value in claims.items() if name != "aud"},
    "two audiences, for the other": lambda it, claims: claims | {"aud": [it.client_id, "b"], "azp": "b"},
    "two audiences, for nobody": lambda it, claims: claims | {"aud": [it.client_id, "b"]},
    "another nonce": lambda _, claims: claims | {"nonce": "of another login"},
    "no nonce": lambda _, claims: {name: value for name, value in claims.items() if name != "nonce"},
    "expired": lambda _, claims: claims | {"exp": claims["iat"] - 300, "iat": claims["iat"] - 600},
    "no expiry": lambda _, claims: {name: value for name, value in claims.items() if name != "exp"},
    "expiry as text": lambda _, claims: claims | {"exp": "9999999999"},
    "from the future": lambda _, claims: claims | {"iat": claims["iat"] + 3600, "exp": claims["exp"] + 7200},
    "not yet": lambda _, claims: claims | {"nbf": claims["iat"] + 3600},
    "nobody": lambda _, claims: claims | {"sub": ""},
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_token_that_is_not_for_this_login_is_refused(world: World, lie: str) -> None:
    api, provider = world
    provider.altered = lambda claims: LIES[lie](provider, claims)
    async with a_browser(api) as browser:
        await assert_refused(browser, await log_in(browser))


FORGERIES: dict[str, Callable[[FakeOpenIdProvider, dict[str, Any]], str]] = {
    "not signed": lambda _, claims: unsigned(claims),
    "another's key": lambda it, claims: it.sign(claims, key=RSAKey.generate_key(2048)),
    "a key nobody published": lambda it, claims: it.sign(claims, key=RSAKey.generate_key(2048), kid="unknown"),
    # What a verifier would take that lets the token choose: the public key as the secret of an HMAC.
    "the public key as a secret": lambda it, claims: with_secret(
        claims, it.keys[-1].as_pem(private=False), kid=it.keys[-1].kid
    ),
    "the client's secret": lambda it, claims: with_secret(claims, it.client_secret.encode()),
    "not a token": lambda *_: "no.token",
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_token_that_the_provider_did_not_sign_is_refused(world: World, forgery: str) -> None:
    api, provider = world
    provider.signed = lambda claims: FORGERIES[forgery](provider, claims)
    async with a_browser(api) as browser:
        await assert_refused(browser, await log_in(browser))


async def test_keys_are_read_again_when_the_provider_has_new_ones(world: World) -> None:
    api, provider = world
    async with a_browser(api) as browser:
        await log_in(browser)
        slug, before = await who(browser), provider.read_keys
    async with a_browser(api) as browser:
        await log_in(browser)
        assert provider.read_keys == before, "they are remembered"
    provider.rotate()
    async with a_browser(api) as browser:
        await log_in(browser)
        assert await who(browser) == slug
        assert provider.read_keys == before + 1


async def test_a_state_works_once_and_in_its_own_browser(world: World) -> None:
    api, _ = world
    async with a_browser(api) as browser, a_browser(api) as thief, a_browser(api) as other:
        back = await sent_back(browser)
        # Somebody who got the address, without a cookie, and with the cookie of a login of their own.
        await assert_refused(thief, await thief.get(back))
        await sent_back(other)
        await assert_refused(other, await other.get(back))
        cookie = browser.cookies["contextbase_attempt"]
        assert (await browser.get(back)).status_code == 303
        assert await who(browser) is not None
        thief.cookies.set("contextbase_attempt", cookie, domain="api.example")
        await assert_refused(thief, await thief.get(back))


async def test_a_state_that_nobody_gave_or_an_answer_of_another_provider_is_refused(world: World) -> None:
    api, _ = world
    async with a_browser(api) as browser:
        back = urlsplit(await sent_back(browser))
        query = {name: values[0] for name, values in parse_qs(back.query).items()}
        for wrong in ({"state": "made-up"}, {"iss": "https://evil.example"}):
            await assert_refused(browser, await browser.get(f"{back.path}?{urlencode(query | wrong)}"))
        error = await browser.get(back.path, params={"error": "access_denied", "state": query["state"]})
        await assert_refused(browser, error)


@pytest.mark.parametrize("page", ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a b"])
async def test_a_login_leads_to_no_other_site(world: World, page: str) -> None:
    async with a_browser(world[0]) as browser:
        assert (await browser.get("/login/oidc", params={"then": page})).status_code == 400


async def test_another_server_cannot_pose_as_the_provider(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    api, provider = world
    assert api.services.people.openid is not None
    api.services.people.openid.provider._documents.forget()
    monkeypatch.setattr(provider, "document", {"issuer": "https://evil.example"})
    async with a_browser(api) as browser:
        assert (await browser.get("/login/oidc")).status_code == 503


async def test_the_secret_of_the_client_is_nowhere_to_be_seen(world: World) -> None:
    api, provider = world
    assert api.services.people.openid is not None
    assert provider.client_secret not in repr(api.services.people.openid)
    assert provider.client_secret not in str(api.services.settings)


async def test_a_link_is_removed_but_never_the_last_way_to_log_in(world: World) -> None:
    api, provider = world
    async with a_browser(api) as browser:
        await log_in(browser)
        slug = await who(browser)
        place = f"{API}/users/{slug}/identities"
        [link] = (await browser.get(place)).json()["identities"]
        assert (link["issuer"], link["subject"]) == (provider.issuer, provider.person["sub"])
        assert (await api.stranger.get(place)).status_code == 401
        asked = {"params": {"issuer": provider.issuer}}
        refused = await api.client.delete(place, **asked)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert await who(browser) == slug
        # Links of others, and of another provider, stay.
        invited = (await api.client.post(f"{API}/users/{slug}/invitation")).json()["url"]
        async with a_browser(api) as chosen:
            body = {"link": invited.partition("#link=")[2], "password": f"long enough {uuid4().hex}"}
            answer = await chosen.post("/login", json=body, headers={"Origin": "http://api.example"})
            assert answer.is_success, answer.text
        assert (await api.client.delete(place, params={"issuer": "https://other.example"})).status_code == 404
        assert len((await browser.get(place)).json()["identities"]) == 1
        assert (await api.client.delete(place, **asked)).json() == {"ended": 2}
        assert (await api.client.get(place)).json() == {"identities": []}
        assert await who(browser) is None, "who came in by it is out"
    async with a_browser(api) as again:
        await log_in(again)
        assert await who(again) not in (None, slug), "whoever it is at the provider is somebody new now"


async def test_nobody_sees_or_removes_the_links_of_somebody_else(world: World) -> None:
    api, provider = world
    async with a_browser(api) as browser, a_browser(api) as other:
        await log_in(browser)
        slug = await who(browser)
        provider.person = {"sub": uuid4().hex, "preferred_username": f"o-{uuid4().hex[:8]}"}
        await log_in(other)
        for name in (slug, "no-such-person"):
            place = f"{API}/users/{name}/identities"
            assert (await other.get(place)).status_code == 403
            headers = {"Origin": "http://api.example"}
            asked = await other.delete(place, params={"issuer": provider.issuer}, headers=headers)
            assert asked.status_code == 403
        assert await who(browser) == slug
