"""Principals and tokens in the database: made once, checked always, audited."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.support.people_world import PeopleWorld

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from contextbase.identity.model import Action, Caller, PrincipalKind, TokenRequest
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import ProjectId, SystemClock, TokenId, TreePath
from contextbase.role_vocabulary import Role
from contextbase.storage.projects import ProjectService

REQUEST = TokenRequest(
    principal_kind=PrincipalKind.AGENT,
    principal_name="agent-1",
    name="work",
    actions=frozenset({Action.READ}),
    life=timedelta(days=1),
)


@dataclass
class SettableClock:
    time: datetime

    def now(self) -> datetime:
        return self.time


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
async def identity(embedded_database: Database, clock: SettableClock) -> AsyncIterator[IdentityService]:
    audit = AuditRepository(AuditKey(b"k" * 32))
    return IdentityService(database=embedded_database, repository=IdentityRepository(), audit=audit, clock=clock)


@pytest.fixture
async def owner(identity: IdentityService) -> Caller:
    secret = await identity.ensure_owner(None)
    assert secret
    return await identity.authenticate(secret)


@pytest.fixture
async def project_id(owner: Caller, embedded_database: Database) -> ProjectId:
    audit = AuditRepository(AuditKey(b"k" * 32))
    projects = ProjectService(database=embedded_database, audit=audit, clock=SystemClock())
    return (await projects.create(owner, "notes")).id


async def test_the_owners_token_is_made_once_and_again_only_when_it_is_no_good(
    identity: IdentityService, clock: SettableClock
) -> None:
    secret = await identity.ensure_owner(None)
    assert secret
    assert (await identity.authenticate(secret)).principal.is_owner
    assert await identity.ensure_owner(secret) is None
    clock.time += timedelta(days=366)
    renewed = await identity.ensure_owner(secret)
    assert renewed
    assert renewed != secret
    assert await identity.ensure_owner("garbage") is not None


async def test_a_token_stands_for_its_principal_until_it_expires(
    identity: IdentityService, owner: Caller, clock: SettableClock
) -> None:
    token, secret = await identity.create_token(owner, REQUEST)
    caller = await identity.authenticate(secret, origin="10.0.0.1", trace_id="t")
    assert (caller.principal.name, caller.grant, caller.origin) == ("agent-1", token.grant, "10.0.0.1")
    clock.time = token.expires_at - timedelta(microseconds=1)
    await identity.authenticate(secret)
    clock.time = token.expires_at
    with pytest.raises(Unauthenticated, match="expired"):
        await identity.authenticate(secret)


async def test_a_revoked_token_is_refused_from_then_on(identity: IdentityService, owner: Caller) -> None:
    token, secret = await identity.create_token(owner, REQUEST)
    assert await identity.revoke_token(owner, token.id) is True
    assert await identity.revoke_token(owner, token.id) is False
    with pytest.raises(Unauthenticated, match="revoked"):
        await identity.authenticate(secret)


@pytest.mark.parametrize(
    "secret", ["", "cb_", "cb_" + "x" * 43, "xx_" + "x" * 43, "cb_" + "x" * 44, "cb_\x00" + "x" * 42]
)
async def test_a_token_nobody_made_is_refused(identity: IdentityService, secret: str) -> None:
    with pytest.raises(Unauthenticated):
        await identity.authenticate(secret)


async def test_only_a_hash_of_the_secret_is_stored(
    identity: IdentityService, owner: Caller, embedded_database: Database
) -> None:
    _, secret = await identity.create_token(owner, REQUEST)
    async with embedded_database.connection() as connection:
        for table in ("tokens", "audit", "principals"):
            rows = await connection.fetch(f"SELECT t::text AS row FROM {table} t")  # noqa: S608 - names from here
            assert rows
            assert not [row for row in rows if secret in row["row"] or secret[3:].encode().hex() in row["row"]]


async def test_tokens_made_at_once_for_a_new_principal_share_it(identity: IdentityService, owner: Caller) -> None:
    made = await asyncio.gather(*(identity.create_token(owner, REQUEST) for _ in range(16)))
    assert len({token.principal.id for token, _ in made}) == 1


async def test_without_admin_no_token_is_made_listed_or_revoked(identity: IdentityService, owner: Caller) -> None:
    token, secret = await identity.create_token(owner, replace(REQUEST, actions=frozenset({Action.READ, Action.WRITE})))
    caller = await identity.authenticate(secret)
    with pytest.raises(Forbidden, match="admin"):
        await identity.create_token(caller, REQUEST)
    with pytest.raises(Forbidden, match="admin"):
        await identity.list_tokens(caller)
    with pytest.raises(Forbidden, match="admin"):
        await identity.revoke_token(caller, token.id)


async def test_an_administrator_who_is_not_the_owner_cannot_become_it(identity: IdentityService, owner: Caller) -> None:
    administrator = await an_administrator(identity, owner)
    with pytest.raises(Forbidden, match="owner"):
        await identity.create_token(
            administrator, replace(REQUEST, principal_kind=PrincipalKind.USER, principal_name="owner")
        )


async def an_administrator(
    identity: IdentityService, owner: Caller, *, allows: str = "read write admin", **limits: Any
) -> Caller:
    actions = frozenset(map(Action, allows.split()))
    request = replace(REQUEST, principal_kind=PrincipalKind.USER, principal_name="ann", actions=actions, **limits)
    _, secret = await identity.create_token(owner, request)
    return await identity.authenticate(secret)


async def test_a_token_never_outlives_the_token_it_was_made_with(
    identity: IdentityService, owner: Caller, clock: SettableClock
) -> None:
    administrator = await an_administrator(identity, owner, life=timedelta(hours=1))
    clock.time += timedelta(minutes=30)
    with pytest.raises(Forbidden):
        await identity.create_token(administrator, replace(REQUEST, life=timedelta(minutes=31)))
    shorter, _ = await identity.create_token(administrator, replace(REQUEST, life=timedelta(minutes=30)))
    longest, _ = await identity.create_token(administrator, replace(REQUEST, life=None))
    assert shorter.expires_at == longest.expires_at == administrator.grant.expires_at


async def test_a_token_without_a_stated_life_lives_90_days_if_its_maker_lives_longer(
    identity: IdentityService, owner: Caller, clock: SettableClock
) -> None:
    token, _ = await identity.create_token(owner, replace(REQUEST, life=None))
    assert token.expires_at == clock.time + timedelta(days=90)


async def test_a_token_allows_no_action_that_its_makers_token_does_not_allow(
    identity: IdentityService, owner: Caller
) -> None:
    administrator = await an_administrator(identity, owner, allows="read admin")
    await identity.create_token(administrator, replace(REQUEST, actions=frozenset({Action.READ, Action.ADMIN})))
    for wider in ({Action.WRITE}, {Action.READ, Action.WRITE}):
        with pytest.raises(Forbidden, match="write"):
            await identity.create_token(administrator, replace(REQUEST, actions=frozenset(wider)))


async def test_a_token_made_within_a_folder_stays_within_it(
    identity: IdentityService, owner: Caller, project_id: ProjectId
) -> None:
    """No token for a folder allows 'admin' today; should one ever do, it makes none for more."""
    administrator = await an_administrator(identity, owner, project_id=project_id)
    within = replace(administrator, grant=replace(administrator.grant, path_prefix=TreePath("docs")))
    for path in (None, TreePath("doc"), TreePath("docs2"), TreePath("other/docs")):
        with pytest.raises(Forbidden):
            await identity.create_token(within, replace(REQUEST, project_id=project_id, path_prefix=path))
    for path in (TreePath("docs"), TreePath("docs/a")):
        await identity.create_token(within, replace(REQUEST, project_id=project_id, path_prefix=path))


async def test_only_the_owner_sees_and_revokes_the_owners_tokens(identity: IdentityService, owner: Caller) -> None:
    administrator = await an_administrator(identity, owner)
    assert owner.grant.token_id not in {token.id for token in await identity.list_tokens(administrator)}
    assert owner.grant.token_id in {token.id for token in await identity.list_tokens(owner)}
    with pytest.raises(NotFound):
        await identity.revoke_token(administrator, owner.grant.token_id)
    assert owner.grant.token_id in {token.id for token in await identity.list_tokens(owner) if token.revoked_at is None}
    assert await identity.revoke_token(owner, owner.grant.token_id)


async def test_an_administrator_of_a_project_manages_the_tokens_of_that_project_only(
    identity: IdentityService, owner: Caller, project_id: ProjectId
) -> None:
    administrator = await an_administrator(identity, owner, project_id=project_id)
    inside, _ = await identity.create_token(owner, replace(REQUEST, project_id=project_id))
    everywhere, _ = await identity.create_token(owner, REQUEST)
    of_owner, _ = await identity.create_token(
        owner, replace(REQUEST, principal_kind=PrincipalKind.USER, principal_name="owner", project_id=project_id)
    )
    listed = {token.id for token in await identity.list_tokens(administrator)}
    assert listed == {administrator.grant.token_id, inside.id}
    for other in (everywhere, of_owner):
        with pytest.raises(NotFound) as refused:
            await identity.revoke_token(administrator, other.id)
        with pytest.raises(NotFound) as unknown:
            await identity.revoke_token(administrator, nobodys := TokenId(uuid4()))
        assert str(refused.value).replace(str(other.id), str(nobodys)) == str(unknown.value)
    assert await identity.revoke_token(administrator, inside.id)


async def test_a_token_for_a_project_that_is_not_there_is_not_made(identity: IdentityService, owner: Caller) -> None:
    before = await identity.list_tokens(owner)
    with pytest.raises(NotFound):
        await identity.create_token(owner, replace(REQUEST, project_id=ProjectId(uuid4())))
    assert await identity.list_tokens(owner) == before


async def test_revoking_a_token_that_is_not_there_says_so(identity: IdentityService, owner: Caller) -> None:
    with pytest.raises(NotFound):
        await identity.revoke_token(owner, TokenId(uuid4()))


async def test_pages_of_tokens_hold_each_once_newest_first(identity: IdentityService, owner: Caller) -> None:
    made = [(await identity.create_token(owner, REQUEST))[0].id for _ in range(5)]
    seen: list[TokenId] = []
    while page := await identity.list_tokens(owner, before=seen[-1] if seen else None, limit=2):
        seen.extend(token.id for token in page)
    assert seen == sorted([*made, owner.grant.token_id], reverse=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal_name": ""},
        {"principal_name": "-a"},
        {"principal_name": "a b"},
        {"principal_name": "a" * 101},
        {"principal_name": "é"},
        {"principal_name": "a\n"},
        {"name": " "},
        {"name": "a\x00b"},
        {"name": "é" * 101},
        {"actions": frozenset()},
        {"life": timedelta(0)},
        {"life": timedelta(days=-1)},
        {"life": timedelta(days=3650, microseconds=1)},
        {"path_prefix": TreePath("a")},
        {"path_prefix": TreePath("a"), "project_id": ProjectId(uuid4()), "actions": frozenset({Action.ADMIN})},
        {"principal_kind": PrincipalKind.SYSTEM},
    ],
)
def test_a_request_that_breaks_a_rule_cannot_be_built(wrong: "dict[str, object]") -> None:
    with pytest.raises(InvalidInput):
        replace(REQUEST, **wrong)  # type: ignore[arg-type]  # one wrong field each, of any type


async def test_what_happens_to_tokens_is_audited_without_secrets(
    identity: IdentityService, owner: Caller, embedded_database: Database
) -> None:
    token, _ = await identity.create_token(owner, REQUEST)
    await identity.revoke_token(owner, token.id)
    async with embedded_database.connection() as connection:
        rows = await connection.fetch("SELECT action, operator_type, details FROM audit ORDER BY number")
    assert [(row["action"], row["operator_type"]) for row in rows] == [
        ("token.create", "system"),
        ("token.create", "api"),
        ("token.revoke", "api"),
    ]
    assert str(token.id) in rows[-1]["details"]


async def test_of_secrets_that_come_together_each_stands_for_its_own_caller(
    identity: IdentityService, owner: Caller
) -> None:
    made = [await identity.create_token(owner, replace(REQUEST, principal_name=f"agent-{n}")) for n in range(5)]
    unknown = "cb_" + "x" * 43
    found = await asyncio.gather(
        *(identity.authenticate(secret) for secret in [unknown, *(secret for _, secret in made)]),
        return_exceptions=True,
    )
    assert isinstance(found[0], Unauthenticated)
    tokens = [caller.grant.token_id for caller in found[1:] if isinstance(caller, Caller)]
    assert tokens == [token.id for token, _ in made]


async def test_nobody_takes_an_agent_away_from_somebody_in_another_project(embedded_database: Database) -> None:
    world = await PeopleWorld.start(embedded_database)
    places = {slug: await world.project(f"of-{slug}") for slug in ("ann", "bob")}
    for slug, project in places.items():
        await world.person(slug, as_member=True)
        await world.roles.grant(world.owner, slug, Role.PROJECT_ADMIN, f"project:{project}")
    request = replace(REQUEST, life=None)
    ann, bob = await world.caller("ann"), await world.caller("bob")
    _, anns = await world.identity.create_token(ann, replace(request, project_id=places["ann"]))
    for somebody, project in ((bob, places["bob"]), (world.owner, places["bob"]), (world.owner, None)):
        with pytest.raises(Conflict):
            await world.identity.create_token(somebody, replace(request, project_id=project))
        world.identity.forget()
        assert (await world.identity.authenticate(anns)).principal.name == request.principal_name
    await world.roles.revoke(world.owner, "ann", Role.PROJECT_ADMIN, f"project:{places['ann']}")
    _, everywhere = await world.identity.create_token(world.owner, request)
    assert (await world.identity.authenticate(everywhere)).principal.name == request.principal_name
    with pytest.raises(Unauthenticated):
        await world.identity.authenticate(anns)
