"""People: their accounts, their roles, and how they log in."""

from dataclasses import dataclass

from contextbase.bootstrap.foundation import Foundation
from contextbase.identity.logins.browser import BrowserLogins
from contextbase.identity.logins.hashing import PasswordHashing
from contextbase.identity.logins.passwords import PasswordService
from contextbase.identity.logins.repository import LoginRepository
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
    logins: BrowserLogins
    passwords: PasswordService


def people_of(
    foundation: Foundation, identity: IdentityService, narrowing: Narrowing, hashing: PasswordHashing
) -> PeopleServices:
    parts = PeopleParts(
        database=foundation.database,
        repository=PeopleRepository(),
        principals=IdentityRepository(),
        identity=identity,
        narrowing=narrowing,
        audit=foundation.audit,
        clock=foundation.clock,
    )
    logins = BrowserLogins(
        database=foundation.database,
        repository=LoginRepository(),
        identity=identity,
        audit=foundation.audit,
        clock=foundation.clock,
    )
    return PeopleServices(
        accounts=PeopleService(parts=parts),
        roles=RoleService(parts=parts),
        logins=logins,
        passwords=PasswordService(parts=parts, repository=LoginRepository(), logins=logins, hashing=hashing),
    )
