"""A caller signed for another machine comes out as it went in, once, there, and for that request alone."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from contextbase.audit.chain import AuditKey
from contextbase.audit.model import WayIn
from contextbase.errors import Unauthenticated
from contextbase.identity.model import Action, Caller, Grant, GrantSource, Principal, PrincipalKind
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath
from contextbase.machines.signature import CallerSigner, SentRequest, SignatureChecker, body_hash

KEY = AuditKey(b"k" * 40).derived("something")
NOW = 1_000_000.0
REQUEST = SentRequest(machine="one", process=uuid4(), method="POST", target="/a?b=%20c", body_hash=body_hash(b"body"))
CALLER = Caller(
    principal=Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.AGENT, name="ann"),
    grant=Grant(
        source=GrantSource.LOGIN,
        actions=frozenset({Action.READ, Action.WRITE}),
        project_id=ProjectId(uuid4()),
        path_prefix=TreePath("docs/\u00fc"),
        expires_at=datetime(2027, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        token_id=TokenId(uuid4()),
        name="a token",
    ),
    way_in=WayIn.WEB_UI,
    on_behalf_of=Principal(id=PrincipalId(uuid4()), kind=PrincipalKind.USER, name="owner", is_owner=True),
    origin="203.0.113.9",
    trace_id="0" * 32,
)
PLAIN = replace(
    CALLER, grant=Grant(source=GrantSource.CHORE, actions=frozenset()), on_behalf_of=None, origin="", trace_id=""
)


def signed(*, at: float = NOW, key: bytes = KEY, caller: Caller = CALLER, request: SentRequest = REQUEST) -> str:
    return CallerSigner(key, clock=lambda: at).signed(caller, request)


def checker(*, machine: str = REQUEST.machine, now: float = NOW) -> SignatureChecker:
    return SignatureChecker(KEY, machine=machine, process=REQUEST.process, clock=lambda: now)


@pytest.mark.parametrize("caller", [CALLER, PLAIN], ids=["full", "plain"])
def test_all_of_a_caller_arrives(caller: Caller) -> None:
    found = checker().caller(signed(caller=caller), method=REQUEST.method, target=REQUEST.target)
    assert found == (caller, REQUEST.body_hash)


def test_a_signature_works_once() -> None:
    here, header = checker(), signed()
    here.caller(header, method=REQUEST.method, target=REQUEST.target)
    with pytest.raises(Unauthenticated):
        here.caller(header, method=REQUEST.method, target=REQUEST.target)
    here.caller(signed(), method=REQUEST.method, target=REQUEST.target)


def test_a_signature_that_has_expired_is_not_remembered_for_ever() -> None:
    times = iter([NOW, NOW, NOW + 130, NOW + 130])
    here = SignatureChecker(KEY, machine="one", process=REQUEST.process, clock=lambda: next(times))
    for at in (NOW, NOW, NOW + 130, NOW + 130):
        here.caller(signed(at=at), method=REQUEST.method, target=REQUEST.target)
    assert len(here._used) == 2


FORGERIES = {
    "nothing": "",
    "empty": ".",
    "made up": "x.y",
    "not ascii": "\u00fc.\u00fc",
    "cut": signed()[:-1],
    "changed": signed().replace(".", "A."),
    "emptied": "." + signed().partition(".")[2],
    "of another key": signed(key=AuditKey(b"k" * 40).derived("something else")),
    "of the secret itself": signed(key=b"k" * 40),
    "expired": signed(at=NOW - 60),
    "of the future": signed(at=NOW + 60),
    "of no time": signed(at=float("nan")),
    "for another machine": signed(request=replace(REQUEST, machine="two")),
    "for another process": signed(request=replace(REQUEST, process=uuid4())),
    "for another method": signed(request=replace(REQUEST, method="GET")),
    "for another target": signed(request=replace(REQUEST, target="/a?b= c")),
}


@pytest.mark.parametrize("which", FORGERIES)
def test_what_is_not_signed_for_this_request_is_refused(which: str) -> None:
    with pytest.raises(Unauthenticated):
        checker().caller(FORGERIES[which], method=REQUEST.method, target=REQUEST.target)


def test_a_derived_key_depends_on_the_secret_and_the_purpose() -> None:
    keys = {AuditKey(secret).derived(purpose) for secret in (b"a" * 32, b"b" * 32) for purpose in ("x", "y")}
    assert len(keys) == 4
