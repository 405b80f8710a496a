"""Grants and callers: what each source allows, and how everybody comes in."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from contextbase.audit.model import WayIn
from contextbase.errors import Forbidden
from contextbase.identity.model import (
    Action,
    Caller,
    Grant,
    GrantSource,
    Principal,
    PrincipalKind,
    Token,
    TokenRequest,
)
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READ_WRITE = frozenset({Action.READ, Action.WRITE})


def a_principal(kind: PrincipalKind, name: str = "ann") -> Principal:
    return Principal(id=PrincipalId(uuid4()), kind=kind, name=name)


def a_token(kind: PrincipalKind = PrincipalKind.USER, actions: frozenset[Action] = frozenset(Action)) -> Token:
    return Token(
        id=TokenId(uuid4()), principal=a_principal(kind), name="laptop", actions=actions,
        project_id=ProjectId(uuid4()), path_prefix=TreePath("docs"), created_at=NOW, expires_at=NOW + timedelta(days=1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "source", "way_in"),
    [
        ("user", "token", "api"),
        ("user", "login", "web_ui"),
        ("agent", "token", "external_agent"),
        ("agent", "login", "external_agent"),
        ("adapter", "token", "saas_adapter"),
        ("adapter", "login", "saas_adapter"),
        ("system", "token", "system"),
    ],
)
def test_the_way_in_comes_from_who_it_is_and_how_the_token_was_sent(kind: str, source: str, way_in: str) -> None:
    assert Caller.with_token(a_token(PrincipalKind(kind)), GrantSource(source)).way_in == way_in


def test_a_token_gives_a_grant_of_the_same_limits() -> None:
    token = a_token()
    grant = token.grant
    assert (grant.token_id, grant.name, grant.actions) == (token.id, token.name, token.actions)
    limits = (token.project_id, token.path_prefix, token.expires_at)
    assert (grant.project_id, grant.path_prefix, grant.expires_at) == limits


@pytest.mark.parametrize("source", list(GrantSource))
def test_only_the_grant_of_a_token_or_a_login_names_a_token(source: GrantSource) -> None:
    """A login need not: it may be made with a password."""
    of_a_token = source in (GrantSource.TOKEN, GrantSource.LOGIN)
    for token_id in (None, TokenId(uuid4())):
        if of_a_token == (token_id is not None) or source is GrantSource.LOGIN:
            assert Grant(source=source, actions=READ_WRITE, token_id=token_id).token_id == token_id
            continue
        with pytest.raises(ValueError, match=f"of a {source}"):
            Grant(source=source, actions=READ_WRITE, token_id=token_id)


@pytest.mark.parametrize("source", ["login", "run", "chore"])
def test_a_refusal_speaks_of_a_token_only_where_there_is_one(source: str) -> None:
    token_id = TokenId(uuid4()) if source == "login" else None
    grant = Grant(
        source=GrantSource(source), actions=frozenset(), project_id=ProjectId(uuid4()), token_id=token_id,
        path_prefix=TreePath("docs"), expires_at=NOW,
    )  # fmt: skip
    with pytest.raises(Forbidden) as refused:
        grant.require(Action.READ)
    assert "token" not in str(refused.value)
    assert source in str(refused.value)


def test_a_grant_without_an_end_limits_no_life_and_one_with_an_end_does() -> None:
    request = TokenRequest(
        principal_kind=PrincipalKind.AGENT, principal_name="bot", name="t", actions=frozenset({Action.READ})
    )
    later = NOW + timedelta(days=3000)
    Grant(source=GrantSource.RUN, actions=READ_WRITE).require_within(request, later)
    with pytest.raises(Forbidden):
        Grant(source=GrantSource.RUN, actions=READ_WRITE, expires_at=NOW).require_within(request, later)


def test_a_chore_may_do_exactly_what_it_says_where_it_says() -> None:
    here, elsewhere = ProjectId(uuid4()), ProjectId(uuid4())
    chore = Caller.chore(a_principal(PrincipalKind.SYSTEM), READ_WRITE, here)
    chore.require(Action.WRITE, here)
    for action, place in ((Action.ADMIN, here), (Action.WRITE, elsewhere), (Action.READ, None)):
        with pytest.raises(Forbidden):
            chore.require(action, place)
    actor = chore.actor
    assert (actor.way_in, actor.grant, actor.token_id) == (WayIn.SYSTEM, "chore", None)


def test_an_agent_in_a_workspace_of_ours_is_no_external_one() -> None:
    outside = Caller.with_token(a_token(PrincipalKind.AGENT))
    inside = outside.working_as(outside.principal)
    assert (inside.way_in, inside.on_behalf_of) == (WayIn.AGENT, None)
    assert inside.grant == outside.grant


def test_a_person_in_its_own_workspace_came_as_it_came() -> None:
    ann = Caller.with_token(a_token(), GrantSource.LOGIN)
    assert ann.working_as(ann.principal) is ann


def test_who_has_an_agent_work_is_kept_however_often_the_work_is_passed_on() -> None:
    ann = Caller.with_token(a_token(), GrantSource.LOGIN)
    bot, helper = (a_principal(PrincipalKind.AGENT, name) for name in ("bot", "helper"))
    working = ann.working_as(bot)
    assert (working.principal, working.way_in, working.on_behalf_of) == (bot, WayIn.AGENT, ann.principal)
    assert working.working_as(helper).on_behalf_of == ann.principal
    actor = working.actor
    assert (actor.principal_id, actor.on_behalf_of, actor.grant) == (bot.id, ann.principal.id, "login")
    assert actor.token_id == ann.grant.token_id
