"""Tokens: made, listed, revoked, and turned into callers."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from contextbase.audit.model import SYSTEM_CHAIN
from contextbase.audit.repository import AuditRepository
from contextbase.db.coalescer import Coalescer
from contextbase.db.database import Connection, Database
from contextbase.db.ttl_cache import TtlCache
from contextbase.errors import Forbidden, NotFound, Unauthenticated
from contextbase.identity.model import (
    DEFAULT_TOKEN_LIFE,
    Action,
    Caller,
    GrantSource,
    PersonAccount,
    Principal,
    PrincipalKind,
    Token,
    TokenRequest,
)
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import Clock, PrincipalId, TokenId, new_uuid

__all__ = ["OWNER_NAME", "IdentityService"]

OWNER_NAME: Final = "owner"
_SECRET: Final = re.compile(r"cb_[A-Za-z0-9_-]{43}")
_OWNER_TOKEN_LIFE: Final = timedelta(days=365)
_MOST_AT_ONCE: Final = 200


class IdentityService:
    def __init__(
        self, *, database: Database, repository: IdentityRepository, audit: AuditRepository, clock: Clock
    ) -> None:
        self._database = database
        self._repository = repository
        self._audit = audit
        self._clock = clock
        self._known: TtlCache[bytes, Token] = TtlCache()
        self._by_id: TtlCache[TokenId, Token] = TtlCache()
        self._people: TtlCache[PrincipalId, tuple[PersonAccount | None]] = TtlCache()
        self._together = Coalescer(self._read, most=_MOST_AT_ONCE)

    async def authenticate(
        self, secret: str, source: GrantSource = GrantSource.TOKEN, *, origin: str = "", trace_id: str = ""
    ) -> Caller:
        """The caller a secret stands for; raises `Unauthenticated`, saying no more than needed."""
        if not _SECRET.fullmatch(secret):
            raise Unauthenticated("The token is malformed; make one with `contextbase token create`.")
        return self._caller(await self._token(_hash(secret)), source, origin=origin, trace_id=trace_id)

    async def with_token_id(
        self, token_id: TokenId, source: GrantSource, *, origin: str = "", trace_id: str = ""
    ) -> Caller:
        """The caller of a login that was made with a token; raises `Unauthenticated` when the token is no good."""
        token = self._by_id.get(token_id)
        if token is None:
            async with self._database.connection() as connection:
                token = await self._repository.token_with_account(connection, token_id)
            if token is not None:
                self._by_id.put(token_id, token)
        return self._caller(token, source, origin=origin, trace_id=trace_id)

    async def with_account(self, caller: Caller) -> Caller:
        """A caller that came without a token, with the rights of its person. Raises `Unauthenticated` for somebody who
        is disabled."""
        account = await self._account(caller.principal.id)
        _check_enabled(account)
        return caller if account is None else replace(caller, grant=caller.grant.with_rights(account.rights))

    def _caller(self, token: Token | None, source: GrantSource, *, origin: str, trace_id: str) -> Caller:
        if token is None:
            raise Unauthenticated("The token is unknown.")
        if token.revoked_at is not None:
            raise Unauthenticated("The token was revoked.")
        if token.expires_at <= self._clock.now():
            raise Unauthenticated("The token has expired; make a new one with `contextbase token create`.")
        _check_enabled(token.account)
        if token.maker is not None and not token.maker.may_work_in(token.project_id):
            raise Unauthenticated(
                "Whoever made this token's agent may not work here any more; ask an administrator for a new token."
            )
        return Caller.with_token(token, source, origin=origin, trace_id=trace_id)

    async def current(self, caller: Caller) -> Caller:
        """A caller that was made elsewhere or earlier, with the rights that its person has now. Raises
        `Unauthenticated` when that person was disabled."""
        rights, limiting = caller.grant.rights, caller.limited_by
        person = rights.person if rights is not None else None if limiting is None else limiting.id
        if person is None:
            return caller
        account = await self._account(person)
        _check_enabled(account)
        if rights is None or account is None:
            return caller
        return replace(caller, grant=caller.grant.with_rights(account.rights))

    async def _account(self, person: PrincipalId) -> PersonAccount | None:
        known = self._people.get(person)
        if known is None:
            async with self._database.connection() as connection:
                found = await self._repository.accounts(connection, {person})
            known = (found.get(person),)
            self._people.put(person, known)
        return known[0]

    def forget(self) -> None:
        """What is remembered of tokens and people: somebody's roles or account changed."""
        self._known.forget()
        self._by_id.forget()
        self._people.forget()

    async def _token(self, secret_hash: bytes) -> Token | None:
        return self._known.get(secret_hash) or await self._together.ask(None, secret_hash)

    async def _read(self, _key: None, hashes: Sequence[bytes]) -> list[Token | None]:
        async with self._database.connection() as connection:
            found = await self._repository.tokens_by_secret(connection, set(hashes))
        for secret_hash, token in found.items():
            self._known.put(secret_hash, token)
        return [found.get(secret_hash) for secret_hash in hashes]

    async def create_token(self, caller: Caller, request: TokenRequest) -> tuple[Token, str]:
        """Make a token; the secret is returned here and can never be read again.

        Raises `Forbidden` if the new token would allow more, or live longer, than the caller's own."""
        is_own = caller.grant.rights is not None and request.is_for(caller.principal)
        if not is_own:
            caller.require(Action.ADMIN, request.project_id)
        now = self._clock.now()
        expires_at = now + (DEFAULT_TOKEN_LIFE if request.life is None else request.life)
        if request.life is None and caller.grant.expires_at is not None:
            expires_at = min(expires_at, caller.grant.expires_at)
        caller.grant.require_within(request, expires_at)
        for_owner = (request.principal_kind, request.principal_name) == (PrincipalKind.USER, OWNER_NAME)
        if for_owner and not caller.principal.is_owner:
            raise Forbidden("Only the owner makes tokens for the owner.")
        async with self._database.transaction() as connection:
            if request.project_id and not await self._repository.project_exists(connection, request.project_id):
                raise NotFound(f"There is no project {request.project_id}.")
            principal = await self._repository.ensure_principal(
                connection, request.principal_kind, request.principal_name, made_by=caller.grant.person
            )
            await self._repository.adopt(connection, principal.id, caller.grant.person, request.project_id)
            if not is_own and not caller.administers_all and await self._repository.is_person(connection, principal.id):
                raise Forbidden("Only an administrator of the platform makes tokens for another person.")
            token, secret = await self._insert(connection, principal, request, now=now, expires_at=expires_at)
            await self._record(
                connection, caller, "token.create", f"Made token '{token.name}' for {principal.name}.", token.id
            )
        return token, secret

    async def list_tokens(self, caller: Caller, *, before: TokenId | None = None, limit: int = 100) -> list[Token]:
        """Newest first: the tokens that the caller may manage."""
        rights = caller.grant.rights
        if rights is None:
            caller.require(Action.ADMIN, caller.grant.project_id)
        async with self._database.connection() as connection:
            return await self._repository.tokens(
                connection,
                project_id=caller.grant.project_id,
                of_person=None if rights is None or caller.administers_all else rights,
                with_owner=caller.principal.is_owner,
                before=before,
                limit=limit,
            )

    async def revoke_token(self, caller: Caller, token_id: TokenId) -> bool:
        """Revoke it; False when it was revoked already. A token that the caller may not manage is not found.

        Requests under way finish; the next one is refused, by other servers of this database within a second."""
        if caller.grant.rights is None:
            caller.require(Action.ADMIN, caller.grant.project_id)
        async with self._database.transaction() as connection:
            token = await self._repository.token(connection, token_id)
            if token is None or not caller.may_manage(token):
                raise NotFound(f"There is no token {token_id} that you may revoke.")
            now = await self._repository.revoke(connection, token_id, self._clock.now())
            if now:
                await self._record(connection, caller, "token.revoke", f"Revoked token '{token.name}'.", token_id)
        self.forget()
        return now

    async def ensure_owner(self, secret: str | None) -> str | None:
        """A new owner's token when the given secret (from the data folder) is none or no longer good; else None."""
        if secret:
            try:
                await self.authenticate(secret)
            except Unauthenticated:
                pass
            else:
                return None
        request = TokenRequest(
            principal_kind=PrincipalKind.USER,
            principal_name=OWNER_NAME,
            name="owner",
            actions=frozenset(Action),
        )
        now = self._clock.now()
        async with self._database.transaction() as connection:
            owner = await self._repository.ensure_principal(connection, PrincipalKind.USER, OWNER_NAME, is_owner=True)
            await self._repository.ensure_owner_account(connection, owner.id)
            token, new_secret = await self._insert(
                connection, owner, request, now=now, expires_at=now + _OWNER_TOKEN_LIFE
            )
            system = await self._repository.ensure_principal(connection, PrincipalKind.SYSTEM, "system")
            caller = Caller.chore(system, frozenset({Action.ADMIN}))
            await self._record(connection, caller, "token.create", "Made the owner's token.", token.id)
        return new_secret

    async def _insert(
        self,
        connection: Connection,
        principal: Principal,
        request: TokenRequest,
        *,
        now: datetime,
        expires_at: datetime,
    ) -> tuple[Token, str]:
        secret = "cb_" + secrets.token_urlsafe(32)
        token = Token(
            id=TokenId(new_uuid()),
            principal=principal,
            name=request.name,
            actions=request.actions,
            project_id=request.project_id,
            path_prefix=request.path_prefix,
            created_at=now,
            expires_at=expires_at,
        )
        await self._repository.insert_token(connection, token, _hash(secret))
        return token, secret

    async def _record(self, connection: Connection, caller: Caller, action: str, summary: str, about: TokenId) -> None:
        now = self._clock.now()
        await self._audit.note(connection, SYSTEM_CHAIN, action, summary, at=now, by=caller.actor, token_id=str(about))


def _check_enabled(account: PersonAccount | None) -> None:
    if account is not None and account.is_disabled:
        raise Unauthenticated("The account is disabled; ask an administrator.")


def _hash(secret: str) -> bytes:
    # A fast hash is right: the secret has 256 random bits, there is nothing to guess.
    return hashlib.sha256(secret.encode()).digest()
