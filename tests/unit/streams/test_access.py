"""Private streams are for whom they belong to; nobody else learns whether there are any."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from contextbase.errors import Forbidden, InvalidInput, NotFound
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind, Token
from contextbase.ids import PrincipalId, ProjectId, TokenId
from contextbase.streams.access import ScopeAccess
from contextbase.streams.model import SYSTEM, Scope

EVERYTHING = frozenset(Action)


def a_caller(actions: frozenset[Action] = EVERYTHING, *, project: UUID | None = None) -> Caller:
    principal = Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.USER, name="ann", is_owner=True)
    now = datetime.now(UTC)
    token = Token(
        id=TokenId(uuid4()),
        principal=principal,
        name="t",
        actions=actions,
        project_id=None if project is None else ProjectId(project),
        path_prefix=None,
        created_at=now,
        expires_at=now + timedelta(days=1),
    )
    return Caller.with_token(token)


class Nothing:
    """Nobody may read any of it."""

    async def may_read(self, caller: Caller, session_id: UUID) -> bool:  # noqa: ARG002 - the port's
        return False


class OneSession:
    """A session of one caller."""

    def __init__(self, session_id: UUID, caller: Caller) -> None:
        self._session_id = session_id
        self._caller = caller

    async def may_read(self, caller: Caller, session_id: UUID) -> bool:
        return caller == self._caller and session_id == self._session_id


def nobodys_access() -> ScopeAccess:
    return ScopeAccess(sessions=Nothing(), workspaces=Nothing())


async def test_a_user_reads_its_own_stream_and_no_other_not_even_as_an_owner() -> None:
    access, ann, bob = nobodys_access(), a_caller(), a_caller()
    own = Scope.user(ann.principal.id)
    assert (await access.readable(ann, own)).scope == own
    messages = []
    for principal in (bob.principal.id, PrincipalId(uuid4())):
        with pytest.raises(NotFound) as caught:
            await access.readable(ann, Scope.user(principal))
        messages.append(caught.value.message.replace(str(principal), ""))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("actions", [EVERYTHING - {Action.READ}, frozenset({Action.WRITE})])
async def test_a_users_stream_takes_a_token_that_allows_to_read(actions: frozenset[Action]) -> None:
    ann = a_caller(actions)
    with pytest.raises(Forbidden):
        await nobodys_access().readable(ann, Scope.user(ann.principal.id))


async def test_a_token_of_one_project_opens_no_stream_outside_it() -> None:
    ann, access = a_caller(project=uuid4()), nobodys_access()
    for scope in (Scope.user(ann.principal.id), SYSTEM):
        with pytest.raises(Forbidden):
            await access.readable(ann, scope)


async def test_who_may_read_a_sessions_stream_is_asked_of_the_session() -> None:
    """It is in a project, and a token for that project will do."""
    session_id, ann = uuid4(), a_caller(project=uuid4())
    access = ScopeAccess(sessions=OneSession(session_id, ann), workspaces=Nothing())
    assert (await access.readable(ann, Scope.session(session_id))).scope == Scope.session(session_id)
    with pytest.raises(NotFound):
        await access.readable(ann, Scope.session(uuid4()))


async def test_the_systems_stream_is_for_admins() -> None:
    access = nobodys_access()
    assert (await access.readable(a_caller(frozenset({Action.ADMIN})), SYSTEM)).scope == SYSTEM
    with pytest.raises(Forbidden):
        await access.readable(a_caller(EVERYTHING - {Action.ADMIN}), SYSTEM)


async def test_a_session_is_for_whom_its_authorizer_names() -> None:
    session_id, ann, bob = uuid4(), a_caller(), a_caller()
    access, scope = (
        ScopeAccess(sessions=OneSession(session_id, ann), workspaces=Nothing()),
        Scope.session(session_id),
    )
    assert (await access.readable(ann, scope)).scope == scope
    for caller, asked in ((bob, scope), (ann, Scope.session(uuid4()))):
        with pytest.raises(NotFound):
            await access.readable(caller, asked)


async def test_without_sessions_nobody_reads_one() -> None:
    with pytest.raises(NotFound):
        await nobodys_access().readable(a_caller(), Scope.session(uuid4()))


async def test_a_projects_stream_is_not_read_past_its_feed() -> None:
    with pytest.raises(InvalidInput):
        await nobodys_access().readable(a_caller(), Scope.project(ProjectId(uuid4())))
