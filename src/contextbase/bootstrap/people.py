"""People: their accounts, their roles, and how they log in."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from contextbase.bootstrap.foundation import Foundation
from contextbase.config.login_provider import OidcSettings
from contextbase.errors import InvalidSettings
from contextbase.identity.logins.browser import BrowserLogins
from contextbase.identity.logins.hashing import PasswordHashing
from contextbase.identity.logins.linked_identities import LinkedIdentities
from contextbase.identity.logins.openid_login import OpenIdLogins
from contextbase.identity.logins.openid_provider import OpenIdClient, OpenIdProvider
from contextbase.identity.logins.openid_repository import OpenIdRepository
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
    identities: LinkedIdentities
    openid: OpenIdLogins | None  # None: people do not log in by a provider


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
    provider = _provider(foundation.settings.oidc)
    return PeopleServices(
        accounts=PeopleService(parts=parts),
        roles=RoleService(parts=parts),
        logins=logins,
        passwords=PasswordService(parts=parts, repository=LoginRepository(), logins=logins, hashing=hashing),
        identities=LinkedIdentities(
            parts=parts, repository=OpenIdRepository(), passwords=LoginRepository(), logins=logins
        ),
        openid=None if provider is None else OpenIdLogins(parts=parts, logins=logins, provider=provider),
    )


def _provider(settings: OidcSettings) -> OpenIdProvider | None:
    if settings.issuer is None:
        return None
    if settings.client_id is None:
        raise InvalidSettings("The setting 'oidc_issuer' needs 'oidc_client_id': the provider's name for this server.")
    client = OpenIdClient(
        issuer=settings.issuer,
        client_id=settings.client_id,
        client_secret=None if settings.client_secret is None else settings.client_secret.get_secret_value(),
        scopes=settings.scopes,
        name=settings.name or urlsplit(settings.issuer).netloc,
        creates_people=settings.create_people,
    )
    return OpenIdProvider(client)
