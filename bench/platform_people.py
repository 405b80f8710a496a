"""People: how long it takes to decide what somebody may do, to log in beside the hash that it computes, and until
somebody who was disabled is out of an open stream."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import httpx
from tests.support.postgres import embedded_server
from tests.support.server import start_server

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import migrate
from contextbase.errors import Forbidden
from contextbase.identity.authorization import authorize
from contextbase.identity.logins.browser import BrowserLogins
from contextbase.identity.logins.hashing import PasswordHashing
from contextbase.identity.logins.passwords import PasswordService
from contextbase.identity.logins.repository import LoginRepository
from contextbase.identity.model import Action, PrincipalKind, TokenRequest
from contextbase.identity.people.model import PersonRequest
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.people.repository import PeopleRepository
from contextbase.identity.people.service import PeopleService
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.roles import RoleScope
from contextbase.identity.service import IdentityService
from contextbase.ids import SystemClock
from contextbase.role_vocabulary import Right

__all__ = ["measure_leaving", "measure_people"]

_PASSWORD: Final = uuid4().hex
_QUESTIONS: Final = 20_000


class _NothingAtWork:
    async def narrowed(self) -> None:
        """There are no sessions here."""


def measure_people(*, bindings: int, rounds: int) -> dict[str, float]:
    with embedded_server() as address:
        return asyncio.run(_measured(address, bindings, rounds))


def measure_leaving(folder: Path, *, rounds: int) -> dict[str, float]:
    folder.mkdir()
    with start_server(folder / "data") as server:
        return asyncio.run(_left(server.url, (server.data / "owner-token").read_text().strip(), rounds))


async def _measured(address: DatabaseAddress, bindings: int, rounds: int) -> dict[str, float]:
    database = await Database.connect(address)
    try:
        await migrate(database)
        audit, clock = AuditRepository(AuditKey(b"k" * 32)), SystemClock()
        identity = IdentityService(database=database, repository=IdentityRepository(), audit=audit, clock=clock)
        parts = PeopleParts(
            database=database,
            repository=PeopleRepository(),
            principals=IdentityRepository(),
            identity=identity,
            narrowing=_NothingAtWork(),
            audit=audit,
            clock=clock,
        )
        return await _authorized(parts, bindings) | await _logged_in(parts, rounds)
    finally:
        await database.close()


async def _authorized(parts: PeopleParts, bindings: int) -> dict[str, float]:
    """Of one person who has a role in each of so many apps; the rights are remembered, as between two requests."""
    secret = await parts.identity.ensure_owner(None)
    assert secret
    owner = await parts.identity.authenticate(secret)
    person = await PeopleService(parts=parts).create(owner, PersonRequest(login_name="busy"), as_member=False)
    async with parts.database.transaction() as connection:
        await connection.executemany(
            "INSERT INTO user_role_bindings (principal_id, role, scope_kind, scope_id, granted_by) "
            "VALUES ($1, 'member', 'app', $2, $3)",
            [(person.id, f"app-{number}", owner.principal.id) for number in range(bindings)],
        )
    request = TokenRequest(
        principal_kind=PrincipalKind.USER, principal_name="busy", name="t", actions=frozenset(Action), life=None
    )
    token = (await parts.identity.create_token(owner, request))[1]
    caller = await parts.identity.authenticate(token)
    scopes = [RoleScope.of_app(f"app-{number * 7919 % bindings}") for number in range(1000)]
    elsewhere = [RoleScope.of_app(f"other-{number}") for number in range(1000)]
    begun = time.perf_counter()
    for number in range(_QUESTIONS):
        authorize(caller, Right.USE_APP, scopes[number % 1000])
    allowed = time.perf_counter() - begun
    begun = time.perf_counter()
    for number in range(_QUESTIONS):
        try:
            authorize(caller, Right.USE_APP, elsewhere[number % 1000])
        except Forbidden:
            continue
    refused = time.perf_counter() - begun
    return {"authorize_us": allowed / _QUESTIONS * 1e6, "authorize_refused_us": refused / _QUESTIONS * 1e6}


async def _logged_in(parts: PeopleParts, rounds: int) -> dict[str, float]:
    hashing = PasswordHashing()
    try:
        logins = BrowserLogins(
            database=parts.database,
            repository=LoginRepository(),
            identity=parts.identity,
            audit=parts.audit,
            clock=parts.clock,
        )
        passwords = PasswordService(parts=parts, repository=LoginRepository(), logins=logins, hashing=hashing)
        stored = await hashing.hash(_PASSWORD)
        async with parts.database.transaction() as connection:
            person = await parts.person(connection, "busy")
            await LoginRepository().put_password(connection, person.id, stored, parts.clock.now())

        async def log_in() -> None:
            await passwords.log_in("busy", _PASSWORD, origin="10.0.0.1")

        async def hash_alone() -> None:
            assert await hashing.matches(stored, _PASSWORD)

        return {"login_ms": await _median(log_in, rounds), "argon2_ms": await _median(hash_alone, rounds)}
    finally:
        hashing.close()


async def _left(url: str, token: str, rounds: int) -> dict[str, float]:
    """From the answer to whoever disables somebody to the end of the stream that person has open."""
    headers = {"Authorization": f"Bearer {token}"}
    taken = []
    async with httpx.AsyncClient(base_url=f"{url}/api/v1", headers=headers, timeout=60) as owner:
        (await owner.post("/projects", json={"name": "bench"})).raise_for_status()
        for _ in range(rounds):
            slug = f"leaver-{uuid4().hex[:8]}"
            (await owner.post("/users", json={"login_name": slug})).raise_for_status()
            role = {"user": slug, "role": "member", "scope": "project:bench"}
            (await owner.put("/roles/bindings", json=role)).raise_for_status()
            wanted = {"principal": slug, "kind": "user", "actions": ["read"]}
            made = (await owner.post("/tokens", json=wanted)).raise_for_status().json()
            theirs = {"Authorization": f"Bearer {made['secret']}", "Accept": "text/event-stream"}
            async with owner.stream("GET", "/feed", params={"project": "bench"}, headers=theirs) as stream:
                lines = stream.aiter_lines()
                await anext(lines)
                (await owner.patch(f"/users/{slug}", json={"disabled": True})).raise_for_status()
                begun = time.perf_counter()
                async for _line in lines:
                    pass
                taken.append((time.perf_counter() - begun) * 1000)
    return {"out_ms": statistics.median(taken), "out_most_ms": max(taken)}


async def _median(work: Callable[[], Awaitable[None]], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)
