"""Roles and shares given and taken away, and people disabled, in any order: what everybody may do is what a small model
says.

25 times 400 steps. Each step is checked by one question to the person it was about, the end of each sequence by all."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.people_world import PeopleWorld

from contextbase.agent_vocabulary import ShareLevel
from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from contextbase.identity.authorization import decide
from contextbase.identity.model import Caller, PrincipalKind
from contextbase.identity.people.model import PersonChange
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.roles import RoleScope
from contextbase.ids import ProjectId, SystemClock
from contextbase.role_vocabulary import Right, Role, RoleScopeKind
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.model import SessionId, SessionRequest
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.shares import SessionSharing
from contextbase.vocabulary import Action

PEOPLE = ("ada", "bob", "eve")
PLACES = ("platform", "app:one", "app:two", "project:one", "project:two", "project:one/x", "user:bob", "department:law")
FITTING = {Role.PLATFORM_ADMIN: ("platform",), Role.APP_ADMIN: PLACES[1:3], Role.PROJECT_ADMIN: PLACES[3:6]}
ROLES = [(role, place) for role, places in FITTING.items() for place in places] + [(Role.MEMBER, p) for p in PLACES]
FILES = {Right.BROWSE_FILES, Right.EDIT_FILES, Action.READ, Action.WRITE}
OWN = FILES | {Right.MANAGE_KB, Right.MANAGE_AGENTCONFIG, Right.OPEN_TERMINAL}

_STEP = st.one_of(
    st.tuples(st.sampled_from(["grant", "grant", "revoke"]), st.sampled_from(PEOPLE), st.sampled_from(ROLES)),
    st.tuples(st.sampled_from(["disable", "enable"]), st.sampled_from(PEOPLE), st.none()),
    st.tuples(
        st.sampled_from(["share", "unshare"]),
        st.sampled_from(PEOPLE),
        st.tuples(st.sampled_from(PEOPLE), st.sampled_from(ShareLevel)),
    ),
)
_QUESTION = st.tuples(st.sampled_from([*Right, *Action]), st.sampled_from(PLACES))


@dataclass
class Model:
    """As the guide says it, in the simplest words."""

    held: set[tuple[str, Role, str]] = field(default_factory=set)
    disabled: set[str] = field(default_factory=set)
    shares: dict[tuple[str, str], ShareLevel] = field(default_factory=dict)  # (owner, guest)

    def opens(self, who: str, owner: str) -> bool:
        """Whether somebody may read the session that a person has in project one."""
        if not self.allows(who, Action.READ, "project:one"):
            return False
        if who == owner or (owner, who) in self.shares:
            return True
        return self.allows(who, Action.ADMIN, "project:one")

    def may_share(self, owner: str, guest: str) -> bool:
        """Guests have to be there already. Owners need what their session may do."""
        drives = all(self.allows(owner, action, "project:one") for action in (Action.READ, Action.WRITE))
        return (
            drives and owner != guest and guest not in self.disabled and self.allows(guest, Action.READ, "project:one")
        )

    def allows(self, who: str, action: Right | Action, place: str) -> bool:
        if (who, Role.PLATFORM_ADMIN, "platform") in self.held:
            return True
        if place == f"user:{who}" and action in OWN:
            return True
        kind = place.split(":", maxsplit=1)[0]
        if action is Right.USE_APP and kind in ("app", "platform") and (who, Role.MEMBER, "platform") in self.held:
            return True
        if {(who, Role.APP_ADMIN, place), (who, Role.PROJECT_ADMIN, place)} & self.held:
            return True
        if (who, Role.MEMBER, place) not in self.held:
            return False
        given = {"app": {Right.USE_APP}, "project": FILES | {Right.USE_APP}, "user": OWN}
        return action in given.get(kind, set())


@dataclass
class Machine:
    """The real thing beside the model."""

    world: PeopleWorld
    sharing: SessionSharing
    model: Model
    people: dict[str, str]  # by the model's names
    projects: dict[str, tuple[str, str]]  # name and id of each
    secrets: dict[str, str]
    sessions: dict[str, SessionId]

    @classmethod
    async def started(cls, database: Database) -> "Machine":
        world, unique = await PeopleWorld.start(database), uuid4().hex[:8]
        if not any(each.name == "law" for each in await world.people.departments(world.owner)):
            await world.people.create_department(world.owner, "law")
        projects = {}
        for name in ("one", "two"):
            project_id = await world.project(f"{name}-{unique}")
            projects[f"project:{name}"] = (f"{name}-{unique}", str(project_id))
        people = {name: f"{name}-{unique}" for name in PEOPLE}
        audit, clock = AuditRepository(AuditKey(b"k" * 32)), SystemClock()
        access = SessionAccess(database=database, repository=SessionRepository(), audit=audit, clock=clock)
        sharing = SessionSharing(
            database=database, access=access, identity=IdentityRepository(), narrowing=world.narrowing, clock=clock
        )
        secrets, sessions = {}, {}
        for name, slug in people.items():
            await world.person(slug)
            secrets[name] = await world.token(slug)
            principal = (await world.identity.authenticate(secrets[name])).principal
            sessions[name] = SessionId(uuid4())
            async with database.transaction() as connection:
                agent = await IdentityRepository().ensure_principal(connection, PrincipalKind.AGENT, f"s-{slug}")
                await access.repository.insert(
                    connection,
                    sessions[name],
                    owner=principal,
                    agent=agent,
                    request=SessionRequest(project_id=ProjectId(UUID(projects["project:one"][1])), provider="scripted"),
                    actions=frozenset({Action.READ, Action.WRITE}),
                )
        return cls(world, sharing, Model(), people, projects, secrets, sessions)

    def named(self, place: str) -> str:
        if place in self.projects:
            return f"project:{self.projects[place][0]}"
        return f"user:{self.people['bob']}" if place == "user:bob" else place

    def scope(self, place: str) -> RoleScope:
        kind, _, name = place.partition(":")
        known = self.projects[place][1] if place in self.projects else name
        return RoleScope(RoleScopeKind(kind), self.people.get(name, name) if kind == "user" else known)

    async def step(self, step: str, who: str, what: Any) -> None:
        world, model, slug = self.world, self.model, self.people[who]
        match step:
            case "disable" | "enable":
                await world.people.change(world.owner, slug, PersonChange(disabled=step == "disable"))
                (model.disabled.add if step == "disable" else model.disabled.discard)(who)
            case "grant" | "revoke":
                role, place = what
                change = world.roles.grant if step == "grant" else world.roles.revoke
                changed = await change(world.owner, slug, role, self.named(place))
                assert changed is (((who, role, place) in model.held) is (step == "revoke"))
                (model.held.add if step == "grant" else model.held.discard)((who, role, place))
            case "share" | "unshare":
                await self._share(step, who, *what)

    async def _share(self, step: str, who: str, guest: str, level: ShareLevel) -> None:
        caller, model = await self.caller(who), self.model
        if caller is None:
            return
        session, slug = self.sessions[who], self.people[guest]
        try:
            if step == "share":
                await self.sharing.share(caller, session, slug, level)
            else:
                await self.sharing.unshare(caller, session, slug)
        except (NotFound, Forbidden, InvalidInput):
            assert step == "unshare" or not model.may_share(who, guest)
            return
        if step == "share":
            assert model.may_share(who, guest)
            model.shares[who, guest] = level
        else:
            model.shares.pop((who, guest), None)

    async def caller(self, who: str) -> Caller | None:
        try:
            caller = await self.world.identity.authenticate(self.secrets[who])
        except Unauthenticated:
            assert who in self.model.disabled
            return None
        assert who not in self.model.disabled
        return caller

    async def check(self, who: str, questions: Iterable[tuple[Right | Action, str]], owners: Iterable[str]) -> None:
        caller = await self.caller(who)
        if caller is None:
            return
        for action, place in questions:
            assert decide(caller, action, self.scope(place)).allowed is self.model.allows(who, action, place), (
                who, action, place,
            )  # fmt: skip
        for owner in owners:
            opens = await self.sharing.access.may_read(caller, self.sessions[owner])
            assert opens is self.model.opens(who, owner), (who, owner)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(_STEP, _QUESTION), min_size=400, max_size=400))
async def test_everybody_may_what_the_model_says_after_any_steps(embedded_database: Database, steps: list) -> None:
    machine = await Machine.started(embedded_database)
    for (step, who, what), question in steps:
        await machine.step(step, who, what)
        await machine.check(who, [question], [what[0]] if "share" in step else [])
    everywhere = (*PLACES, *(f"user:{name}" for name in PEOPLE))
    for who in PEOPLE:
        await machine.check(who, [(action, place) for action in (*Right, *Action) for place in everywhere], PEOPLE)
