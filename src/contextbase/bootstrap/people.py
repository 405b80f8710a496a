"""People: their accounts and roles."""

from dataclasses import dataclass

from contextbase.bootstrap.foundation import Foundation
from contextbase.identity.people.bindings import RoleService
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.people.ports import Narrowing
from contextbase.identity.people.repository import PeopleRepository
from contextbase.identity.people.service import PeopleService
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService

__all__ = ["PeopleServices", "people_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PeopleServices:
    accounts: PeopleService
    roles: RoleService


def people_of(foundation: Foundation, identity: IdentityService, narrowing: Narrowing) -> PeopleServices:
    parts = PeopleParts(
        database=foundation.database,
        repository=PeopleRepository(),
        principals=IdentityRepository(),
        identity=identity,
        narrowing=narrowing,
        audit=foundation.audit,
        clock=foundation.clock,
    )
    return PeopleServices(accounts=PeopleService(parts=parts), roles=RoleService(parts=parts))
