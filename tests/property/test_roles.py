"""Roles given, taken away and people disabled in any order: what everybody may do is what a small model says."""

from dataclasses import dataclass, field
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.people_world import PeopleWorld

from contextbase.db.database import Database
from contextbase.errors import Unauthenticated
from contextbase.identity.authorization import decide
from contextbase.identity.people.model import PersonChange
from contextbase.identity.roles import RoleScope
from contextbase.role_vocabulary import Right, Role, RoleScopeKind
from contextbase.vocabulary import Action

PEOPLE = ("ada", "bob", "eve")
PLACES = ("platform", "app:one", "app:two", "project:one", "project:two", "project:one/x", "user:bob", "department:law")
FITTING = {Role.PLATFORM_ADMIN: ("platform",), Role.APP_ADMIN: PLACES[1:3], Role.PROJECT_ADMIN: PLACES[3:6]}
ROLES = [(role, place) for role, places in FITTING.items() for place in places] + [(Role.MEMBER, p) for p in PLACES]
FILES = {Right.BROWSE_FILES, Right.EDIT_FILES, Action.READ, Action.WRITE}
OWN = FILES | {Right.MANAGE_KB, Right.MANAGE_AGENTCONFIG, Right.OPEN_TERMINAL}

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["grant", "grant", "revoke"]), st.sampled_from(PEOPLE), st.sampled_from(ROLES)),
        st.tuples(st.sampled_from(["disable", "enable"]), st.sampled_from(PEOPLE), st.none()),
    ),
    min_size=1,
    max_size=40,
)


@dataclass
class Model:
    """As the guide says it, in the simplest words."""

    held: set[tuple[str, Role, str]] = field(default_factory=set)
    disabled: set[str] = field(default_factory=set)

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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
async def test_everybody_may_what_the_model_says_after_any_steps(embedded_database: Database, steps: list) -> None:
    world, model, unique = await PeopleWorld.start(embedded_database), Model(), uuid4().hex[:8]
    projects = {f"project:{name}": f"{name}-{unique}" for name in ("one", "two")}
    ids = {place: await world.project(name) for place, name in projects.items()}
    people = {name: f"{name}-{unique}" for name in PEOPLE}
    departments = {each.name for each in await world.people.departments(world.owner)}
    if "law" not in departments:
        await world.people.create_department(world.owner, "law")
    secrets = {}
    for name, slug in people.items():
        await world.person(slug)
        secrets[name] = await world.token(slug)

    def named(place: str) -> str:
        if place in projects:
            return f"project:{projects[place]}"
        return f"user:{people['bob']}" if place == "user:bob" else place

    for step, who, what in steps:
        slug = people[who]
        if step in ("disable", "enable"):
            await world.people.change(world.owner, slug, PersonChange(disabled=step == "disable"))
            (model.disabled.add if step == "disable" else model.disabled.discard)(who)
        else:
            role, place = what
            change = world.roles.grant if step == "grant" else world.roles.revoke
            changed = await change(world.owner, slug, role, named(place))
            assert changed is (((who, role, place) in model.held) is (step == "revoke"))
            (model.held.add if step == "grant" else model.held.discard)((who, role, place))
    for who in PEOPLE:
        try:
            caller = await world.identity.authenticate(secrets[who])
        except Unauthenticated:
            assert who in model.disabled
            continue
        assert who not in model.disabled
        for place in (*PLACES, *(f"user:{name}" for name in PEOPLE)):
            kind, _, name = place.partition(":")
            stored = str(ids[place]) if place in ids else people.get(name, name) if kind == "user" else name
            scope = RoleScope(RoleScopeKind(kind), stored)
            for action in (*Right, *Action):
                assert decide(caller, action, scope).allowed is model.allows(who, action, place), (who, action, place)
