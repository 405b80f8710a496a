"""What roles give, where, and to whom."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from contextbase.errors import Forbidden, InvalidInput
from contextbase.identity.authorization import authorize, decide, standing
from contextbase.identity.model import Caller, PersonAccount, Principal, Token
from contextbase.identity.roles import GIVEN, PLATFORM, Rights, RoleBinding, RoleScope
from contextbase.ids import PrincipalId, ProjectId, TokenId
from contextbase.role_vocabulary import Right, Role, RoleScopeKind
from contextbase.vocabulary import Action, PrincipalKind

APP, OTHER_APP = RoleScope.of_app("notes"), RoleScope.of_app("other")
PROJECT, OTHER_PROJECT = ProjectId(uuid4()), ProjectId(uuid4())
EVERYTHING: tuple[Right | Action, ...] = (*Right, *Action)


def caller(
    *bindings: tuple[Role, RoleScope], actions: frozenset[Action] = frozenset(Action), **limits: object
) -> Caller:
    ada = Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.USER, name="ada")
    held = [RoleBinding(role=role, scope=scope) for role, scope in bindings]
    return Caller.with_token(token(ada, actions, Rights(person=ada.id, slug="ada", bindings=held), **limits))


def token(principal: Principal, actions: frozenset[Action], rights: Rights | None, **limits: object) -> Token:
    return Token(
        id=TokenId(uuid4()),
        principal=principal,
        name="t",
        actions=actions,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        expires_at=datetime(2027, 1, 1, tzinfo=UTC),
        account=None if rights is None else PersonAccount(rights=rights, is_disabled=False),
        **({"project_id": None, "path_prefix": None} | limits),
    )


def allowed(who: Caller, scope: RoleScope) -> set[Right | Action]:
    return {action for action in EVERYTHING if decide(who, action, scope).allowed}


def test_who_has_no_role_may_manage_what_is_their_own_and_nothing_else() -> None:
    nobody = caller()
    for scope in (PLATFORM, APP, RoleScope.of_project(PROJECT), RoleScope.of_user("bob"), RoleScope.of_department("d")):
        assert allowed(nobody, scope) == set()
    own = {*Right, Action.READ, Action.WRITE} - {Right.USE_APP}
    assert allowed(nobody, RoleScope.of_user("ada")) == own


@pytest.mark.parametrize(("role", "kind"), [pair for pair in GIVEN if pair[0] is not Role.PLATFORM_ADMIN])
def test_a_role_gives_what_the_table_says_in_its_own_scope_alone(role: Role, kind: RoleScopeKind) -> None:
    scopes = {
        RoleScopeKind.PLATFORM: (PLATFORM, PLATFORM),
        RoleScopeKind.APP: (APP, OTHER_APP),
        RoleScopeKind.PROJECT: (RoleScope.of_project(PROJECT), RoleScope.of_project(OTHER_PROJECT)),
        RoleScopeKind.USER: (RoleScope.of_user("bob"), RoleScope.of_user("eve")),
        RoleScopeKind.DEPARTMENT: (RoleScope.of_department("sales"), RoleScope.of_department("law")),
    }
    where, elsewhere = scopes[kind]
    who = caller((role, where))
    assert allowed(who, where) == set(GIVEN[role, kind])
    if kind is not RoleScopeKind.PLATFORM:
        assert allowed(who, elsewhere) == set()
        assert allowed(who, PLATFORM) == set()


def test_a_member_of_the_platform_uses_every_app_and_reaches_no_project() -> None:
    who = caller((Role.MEMBER, PLATFORM))
    assert allowed(who, APP) == {Right.USE_APP}
    assert allowed(who, RoleScope.of_project(PROJECT)) == set()
    assert not who.grant.reaches(PROJECT)


def test_an_administrator_of_the_platform_may_do_everything() -> None:
    who = caller((Role.PLATFORM_ADMIN, PLATFORM))
    for scope in (PLATFORM, APP, RoleScope.of_project(PROJECT), RoleScope.of_user("bob")):
        assert allowed(who, scope) == set(EVERYTHING)
    assert who.administers_all


def test_a_role_in_a_project_gives_the_actions_of_the_core_there() -> None:
    member, admin = (caller((role, RoleScope.of_project(PROJECT))) for role in (Role.MEMBER, Role.PROJECT_ADMIN))
    member.require(Action.WRITE, PROJECT)
    admin.require(Action.ADMIN, PROJECT)
    for who, action, project in (
        (member, Action.ADMIN, PROJECT),
        (member, Action.READ, OTHER_PROJECT),
        (admin, Action.READ, OTHER_PROJECT),
        (admin, Action.ADMIN, None),
    ):
        with pytest.raises(Forbidden):
            who.require(action, project)


def test_a_token_limits_what_roles_give() -> None:
    scope = RoleScope.of_project(PROJECT)
    reader = caller((Role.PROJECT_ADMIN, scope), actions=frozenset({Action.READ}))
    assert allowed(reader, scope) == {Right.USE_APP, Right.BROWSE_FILES, Action.READ}
    limited = caller((Role.PLATFORM_ADMIN, PLATFORM), project_id=PROJECT)
    assert allowed(limited, scope) == set(EVERYTHING)
    assert allowed(limited, APP) == allowed(limited, PLATFORM) == set()
    assert "'write'" in decide(reader, Right.EDIT_FILES, scope).reason
    assert "limited to another project" in decide(limited, Right.EDIT_FILES, APP).reason


def test_callers_without_an_account_have_what_their_tokens_say() -> None:
    agent = Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.AGENT, name="a")
    plain = Caller.with_token(token(agent, frozenset({Action.READ, Action.WRITE}), None))
    files = {Right.BROWSE_FILES, Right.EDIT_FILES, Action.READ, Action.WRITE}
    assert allowed(plain, RoleScope.of_project(PROJECT)) == files
    assert allowed(plain, APP) == allowed(plain, PLATFORM) == allowed(plain, RoleScope.parse("project:app/x")) == set()
    assert allowed(plain, RoleScope.of_user("a")) == set()  # that is a person, whoever has the same name
    owner = Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.USER, name="owner", is_owner=True)
    assert allowed(Caller.with_token(token(owner, frozenset(Action), None)), APP) == set(EVERYTHING)


def test_who_is_refused_is_told_what_and_where() -> None:
    with pytest.raises(Forbidden, match=r"use_app.*app:notes"):
        authorize(caller(), Right.USE_APP, APP)


def test_a_decision_names_the_role_that_decides() -> None:
    assert "app_admin in app:notes" in decide(caller((Role.APP_ADMIN, APP)), Right.MANAGE_KB, APP).reason
    assert decide(caller(), Right.MANAGE_KB, RoleScope.of_user("ada")).reason == "it is their own"


def test_standing_has_the_departments_and_roles_that_visibility_asks_for() -> None:
    ada = Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.USER, name="ada")
    rights = Rights(
        person=ada.id,
        slug="ada",
        department="sales",
        bindings=[RoleBinding(role=Role.MEMBER, scope=RoleScope.of_department("law"))],
    )
    found = standing(Caller.with_token(token(ada, frozenset(Action), rights)))
    assert found.departments == {"sales", "law"}
    assert found.roles == {Role.MEMBER}


@pytest.mark.parametrize("role", [Role.PLATFORM_ADMIN, Role.APP_ADMIN, Role.PROJECT_ADMIN])
def test_a_role_fits_its_kind_of_scope_alone(role: Role) -> None:
    with pytest.raises(InvalidInput):
        RoleBinding(role=role, scope=RoleScope.of_user("ada"))


@pytest.mark.parametrize(
    "text", ["", "platform:", "platform:x", "app", "app:", "app:A b", "project:a/b/c", "nowhere:x"]
)
def test_a_malformed_scope_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        RoleScope.parse(text)


@pytest.mark.parametrize("text", ["platform", "app:notes", "project:notes", "project:app/default", "user:ada@x"])
def test_a_scope_reads_back_as_it_was_written(text: str) -> None:
    assert str(RoleScope.parse(text)) == text
