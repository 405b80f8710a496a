"""A caller whom one server has authenticated, signed for another: no token travels, and nothing else is believed.

A signature is for one request: its method, its path and query, its body where that is short, one process of one
machine, and a minute. A process takes it once."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from typing import Any, Final
from uuid import UUID

from contextbase.audit.model import WayIn
from contextbase.errors import Unauthenticated
from contextbase.identity.model import Action, Caller, Grant, GrantSource, Principal, PrincipalKind
from contextbase.identity.roles import Rights
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath

__all__ = ["CallerSigner", "SentRequest", "SignatureChecker", "body_hash"]

_SECONDS: Final = 60.0  # clocks of servers may differ by less than this
_MOST_REMEMBERED: Final = 1_000_000
_FORM: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class SentRequest:
    """What a signature is for."""

    machine: str
    process: UUID
    method: str
    target: str  # path and query, as sent
    body_hash: str | None  # None: it is streamed


class CallerSigner:
    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock

    def signed(self, caller: Caller, request: SentRequest) -> str:
        """For a header."""
        claims = {
            "form": _FORM,
            "caller": _caller(caller),
            "at": self._clock(),
            "once": token_hex(16),
            "machine": request.machine,
            "process": str(request.process),
            "method": request.method,
            "target": request.target,
            "body": request.body_hash,
        }
        text = base64.urlsafe_b64encode(json.dumps(claims, ensure_ascii=True).encode())
        return f"{text.decode()}.{_mac(self._key, text)}"


class SignatureChecker:
    """For the requests that one process of a machine gets."""

    def __init__(self, key: bytes, *, machine: str, process: UUID, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._machine = machine
        self._process = process
        self._clock = clock
        self._used: dict[str, float] = {}  # until when, oldest first

    def caller(self, signed: str, *, method: str, target: str) -> tuple[Caller, str | None]:
        """Who sends the request, and the hash that its body must have (None: it is streamed). Raises
        `Unauthenticated`; the second time, too."""
        claims = self._claims(signed)
        now = self._clock()
        if not abs(now - claims["at"]) < _SECONDS:
            raise Unauthenticated(
                "The signature of this request has expired. Servers' clocks must not differ by a minute."
            )
        meant = (claims["machine"], claims["process"], claims["method"], claims["target"])
        if meant != (self._machine, str(self._process), method, target):
            raise Unauthenticated("The signature is for another request, or for another machine.")
        self._use(claims["once"], now)
        return _caller_of(claims["caller"]), claims["body"]

    def _claims(self, signed: str) -> Mapping[str, Any]:
        text, _, mac = signed.partition(".")
        if not hmac.compare_digest(mac.encode(), _mac(self._key, text.encode()).encode()):
            raise Unauthenticated(
                "The request is not signed by a server of this database. Servers and machines need the same "
                "CONTEXTBASE_AUDIT_KEY."
            )
        try:
            claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
        except (ValueError, binascii.Error):  # signed, and yet not ours: a newer server's
            claims = {}
        if claims.get("form") != _FORM:
            raise Unauthenticated("The request is signed in another way than this version knows.")
        return claims

    def _use(self, once: str, now: float) -> None:
        for used, until in list(self._used.items()):
            if until > now:
                break
            del self._used[used]
        if once in self._used or len(self._used) >= _MOST_REMEMBERED:
            raise Unauthenticated("The signature of this request was used already.")
        self._used[once] = now + 2 * _SECONDS


def body_hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _mac(key: bytes, text: bytes) -> str:
    return hmac.digest(key, text, hashlib.sha256).hex()


def _caller(caller: Caller) -> dict[str, object]:
    grant = caller.grant
    return {
        "principal": _principal(caller.principal),
        "way_in": str(caller.way_in),
        "on_behalf_of": None if caller.on_behalf_of is None else _principal(caller.on_behalf_of),
        "origin": caller.origin,
        "trace_id": caller.trace_id,
        "grant": {
            "source": str(grant.source),
            "actions": sorted(map(str, grant.actions)),
            "project_id": None if grant.project_id is None else str(grant.project_id),
            "path_prefix": None if grant.path_prefix is None else str(grant.path_prefix),
            "expires_at": None if grant.expires_at is None else grant.expires_at.isoformat(),
            "token_id": None if grant.token_id is None else str(grant.token_id),
            "name": grant.name,
            # Whose roles hold: the server that takes the request over reads them itself.
            "person": None if grant.rights is None else str(grant.rights.person),
            "ceiling": sorted(map(str, grant.ceiling)),
            "maker": None if grant.maker is None else str(grant.maker),
        },
    }


def _caller_of(claims: Mapping[str, Any]) -> Caller:
    grant = claims["grant"]
    project_id, prefix, expires_at, token_id = (
        grant[name] for name in ("project_id", "path_prefix", "expires_at", "token_id")
    )
    behalf, person, maker = claims["on_behalf_of"], grant["person"], grant.get("maker")
    return Caller(
        principal=_principal_of(claims["principal"]),
        way_in=WayIn(claims["way_in"]),
        on_behalf_of=None if behalf is None else _principal_of(behalf),
        origin=claims["origin"],
        trace_id=claims["trace_id"],
        grant=Grant(
            source=GrantSource(grant["source"]),
            maker=None if maker is None else PrincipalId(UUID(maker)),
            actions=frozenset(map(Action, grant["actions"])),
            project_id=None if project_id is None else ProjectId(UUID(project_id)),
            path_prefix=None if prefix is None else TreePath.stored(prefix),
            expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
            token_id=None if token_id is None else TokenId(UUID(token_id)),
            name=grant["name"],
            rights=None if person is None else Rights(person=PrincipalId(UUID(person)), slug=""),
            narrowed_from=None if person is None else frozenset(map(Action, grant["ceiling"])),
        ),
    )


def _principal(principal: Principal) -> dict[str, object]:
    return {
        "id": str(principal.id),
        "kind": str(principal.kind),
        "name": principal.name,
        "is_owner": principal.is_owner,
    }


def _principal_of(claims: Mapping[str, Any]) -> Principal:
    return Principal(
        id=PrincipalId(UUID(claims["id"])),
        kind=PrincipalKind(claims["kind"]),
        name=claims["name"],
        is_owner=claims["is_owner"],
    )
