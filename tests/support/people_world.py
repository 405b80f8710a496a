"""People on a database of their own, without a server."""

from dataclasses import dataclass, field
from datetime import timedelta

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.identity.model import Action, Caller, PrincipalKind, TokenRequest
from contextbase.identity.people.bindings import RoleService
from contextbase.identity.people.model import Person, PersonRequest
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.people.repository import PeopleRepository
from contextbase.identity.people.service import PeopleService
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import ProjectId, SystemClock
from contextbase.storage.projects import ProjectService

__all__ = ["PeopleWorld"]


@dataclass
class _CountedNarrowing:
    times: int = 0

    async def narrowed(self) -> None:
        self.times += 1


@dataclass(frozen=True, kw_only=True)
class PeopleWorld:
    identity: IdentityService
    people: PeopleService
    roles: RoleService
    projects: ProjectService
    owner: Caller
    narrowing: _CountedNarrowing = field(default_factory=_CountedNarrowing)

    @classmethod
    async def start(cls, database: Database) -> "PeopleWorld":
        audit, clock, narrowing = AuditRepository(AuditKey(b"k" * 32)), SystemClock(), _CountedNarrowing()
        identity = IdentityService(database=database, repository=IdentityRepository(), audit=audit, clock=clock)
        parts = PeopleParts(
            database=database,
            repository=PeopleRepository(),
            principals=IdentityRepository(),
            identity=identity,
            narrowing=narrowing,
            audit=audit,
            clock=clock,
        )
        secret = await identity.ensure_owner(None)
        assert secret
        return cls(
            identity=identity,
            people=PeopleService(parts=parts),
            roles=RoleService(parts=parts),
            projects=ProjectService(database=database, audit=audit, clock=clock),
            owner=await identity.authenticate(secret),
            narrowing=narrowing,
        )

    async def project(self, name: str) -> ProjectId:
        return (await self.projects.create(self.owner, name)).id

    async def person(self, slug: str, *, as_member: bool = False) -> Person:
        return await self.people.create(self.owner, PersonRequest(login_name=slug), as_member=as_member)

    async def caller(self, slug: str) -> Caller:
        """A person with the rights of this moment; raises when they are disabled."""
        secret = await self.token(slug)
        return await self.identity.authenticate(secret)

    async def token(self, slug: str, by: Caller | None = None) -> str:
        """A secret of a person's that limits nothing."""
        request = TokenRequest(
            principal_kind=PrincipalKind.USER,
            principal_name=slug,
            name="t",
            actions=frozenset(Action),
            life=timedelta(days=1),
        )
        return (await self.identity.create_token(by or self.owner, request))[1]
