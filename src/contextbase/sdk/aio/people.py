"""People, departments and roles, as parts of the clients: `client.users`, `client.departments` and `client.roles`."""

from typing import Final, Literal
from urllib.parse import quote

from contextbase.role_vocabulary import Right, Role
from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.arguments import checked
from contextbase.vocabulary import Action
from contextbase.wire.login import IdentitiesView, LoggedOut, PasswordLinkView, PasswordPut
from contextbase.wire.people import (
    DepartmentCreate,
    DepartmentPatch,
    DepartmentsView,
    DepartmentView,
    RightView,
    RoleBindingBody,
    RoleBindingPage,
    RoleChanged,
    RolesView,
    UserCreate,
    UserPage,
    UserPatch,
    UserView,
)

__all__ = ["AsyncDepartments", "AsyncRoles", "AsyncUsers"]

_USERS: Final = "/api/v1/users"
_DEPARTMENTS: Final = "/api/v1/departments"
_ROLES: Final = "/api/v1/roles"

RoleName = Literal["platform_admin", "app_admin", "project_admin", "member"]


class AsyncUsers:
    """Accounts of people and services. Needs an administrator of the platform; everybody may `get` their own."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def create(
        self,
        login_name: str,
        *,
        slug: str = "",
        display_name: str = "",
        email: str | None = None,
        department: str | None = None,
        service: bool = False,
        member: bool = True,
    ) -> UserView:
        """Make an account. The slug (default: from the login name) never changes. `service`: it has tokens, and never
        logs in. `member`: it may use every app that is shown to it. Raises `Conflict` if a name is taken."""
        body = UserCreate(
            login_name=login_name,
            slug=slug,
            display_name=display_name,
            email=email,
            department=department,
            service=service,
            member=member,
        )
        return await self._connection.call(UserView, "POST", _USERS, body)

    @checked
    async def get(self, user: str) -> UserView:
        """One account, by its slug."""
        return await self._connection.read(UserView, f"{_USERS}/{quote(user, safe='')}")

    @checked
    async def list(self, *, after: str = "", department: str | None = None, limit: int = 100) -> UserPage:
        """Accounts by slug. Pass the page's `next_after` for the next page."""
        return await self._connection.read(UserPage, _USERS, after=after, department=department, limit=limit)

    @checked
    async def update(
        self,
        user: str,
        *,
        login_name: str | None = None,
        display_name: str | None = None,
        email: str | None = None,
        department: str | None = None,
        disabled: bool | None = None,
    ) -> UserView:
        """Change an account; what is None stays, and an empty e-mail or department is cleared. Who is disabled is out
        within a second: tokens, logins, streams, and what agents do for them."""
        body = UserPatch(
            login_name=login_name, display_name=display_name, email=email, department=department, disabled=disabled
        )
        return await self._connection.call(UserView, "PATCH", f"{_USERS}/{quote(user, safe='')}", body)

    @checked
    async def invite(self, user: str) -> PasswordLinkView:
        """Make a link by which a person chooses a password, once. The links made before are no good any more."""
        return await self._connection.call(PasswordLinkView, "POST", f"{_USERS}/{quote(user, safe='')}/invitation")

    @checked
    async def reset_password(self, user: str) -> PasswordLinkView:
        """Take a person's password away, log them out everywhere, and make a link to choose another by."""
        return await self._connection.call(PasswordLinkView, "POST", f"{_USERS}/{quote(user, safe='')}/password-reset")

    @checked
    async def log_out(self, user: str) -> LoggedOut:
        """Log a person out of every browser. Their tokens stay."""
        return await self._connection.call(LoggedOut, "POST", f"{_USERS}/{quote(user, safe='')}/logout")

    @checked
    async def identities(self, user: str) -> IdentitiesView:
        """Who a person is at login providers. Everybody may see their own."""
        return await self._connection.read(IdentitiesView, f"{_USERS}/{quote(user, safe='')}/identities")

    @checked
    async def unlink(self, user: str, issuer: str) -> LoggedOut:
        """Unlink a person from a login provider, and log them out of every browser. Raises `Conflict` if they have no
        password and no other provider, and `NotFound` if they are not linked to it."""
        place = f"{_USERS}/{quote(user, safe='')}/identities"
        return await self._connection.call(LoggedOut, "DELETE", place, issuer=issuer)

    @checked
    async def change_password(self, old: str, new: str) -> LoggedOut:
        """Change your own password. Every browser is logged out."""
        return await self._connection.call(LoggedOut, "PUT", "/api/v1/me/password", PasswordPut(old=old, new=new))


class AsyncDepartments:
    """Departments, which people are in. Needs an administrator of the platform."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> DepartmentsView:
        """All, by name."""
        return await self._connection.read(DepartmentsView, _DEPARTMENTS)

    @checked
    async def create(self, name: str, *, title: str = "") -> DepartmentView:
        """Make one; its name never changes. Raises `Conflict` if the name is taken."""
        body = DepartmentCreate(name=name, title=title)
        return await self._connection.call(DepartmentView, "POST", _DEPARTMENTS, body)

    @checked
    async def rename(self, name: str, title: str) -> DepartmentView:
        """Give it another title."""
        body = DepartmentPatch(title=title)
        return await self._connection.call(DepartmentView, "PATCH", f"{_DEPARTMENTS}/{quote(name, safe='')}", body)

    @checked
    async def delete(self, name: str) -> None:
        """Remove one that nobody is in. Raises `Conflict` otherwise."""
        await self._connection.done("DELETE", f"{_DEPARTMENTS}/{quote(name, safe='')}")


class AsyncRoles:
    """Who has which role where. Administrators of the platform give every role; those of an app or a project make
    others members of it."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> RolesView:
        """What each role gives in each kind of scope."""
        return await self._connection.read(RolesView, _ROLES)

    @checked
    async def list_bindings(
        self, *, user: str | None = None, scope: str | None = None, offset: int = 0, limit: int = 100
    ) -> RoleBindingPage:
        """Who has which role: of a person, in a scope (`platform`, `project:notes` …), or everywhere."""
        return await self._connection.read(
            RoleBindingPage, f"{_ROLES}/bindings", user=user, scope=scope, offset=offset, limit=limit
        )

    @checked
    async def grant(self, user: str, role: RoleName, scope: str = "platform") -> RoleChanged:
        """Give a person a role in a scope."""
        body = RoleBindingBody(user=user, role=Role(role), scope=scope)
        return await self._connection.call(RoleChanged, "PUT", f"{_ROLES}/bindings", body)

    @checked
    async def revoke(self, user: str, role: RoleName, scope: str = "platform") -> RoleChanged:
        """Take a role away. It takes effect within a second, also for what agents do for the person."""
        path = f"{_ROLES}/bindings"
        return await self._connection.call(RoleChanged, "DELETE", path, user=user, role=role, scope=scope)

    @checked
    async def explain(self, user: str, action: Right | Action, scope: str) -> RightView:
        """Whether a person may do something somewhere, and which role decides it. A token may allow less."""
        return await self._connection.read(RightView, f"{_ROLES}/explain", user=user, action=str(action), scope=scope)
