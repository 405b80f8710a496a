"""`contextbase user …`, `contextbase department …` and `contextbase role …`"""

from typing import Annotated, cast, get_args

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.phrases import local_day
from contextbase.role_vocabulary import Right
from contextbase.sdk import Client
from contextbase.sdk.aio.people import RoleName
from contextbase.vocabulary import Action
from contextbase.wire.people import RoleBindingView, UserView

__all__ = ["departments", "roles", "users"]

users = typer.Typer(help="Create, list, change and disable accounts of people and services.", no_args_is_help=True)
departments = typer.Typer(help="Create, list, rename and delete departments.", no_args_is_help=True)
roles = typer.Typer(help="Give people roles, take them away, and see what they give.", no_args_is_help=True)

User = Annotated[
    str, typer.Argument(help="The person's slug, as `contextbase user list` shows it.", show_default=False)
]
Department = Annotated[str, typer.Argument(help="The department's name.", show_default=False)]
RoleText = Annotated[
    str,
    typer.Argument(metavar="ROLE", help="platform_admin, app_admin, project_admin or member.", show_default=False),
]
Scope = Annotated[
    str,
    typer.Argument(help="platform, app:NAME, project:NAME, project:APP/NAME, user:SLUG or department:NAME."),
]


@users.command("create")
@command
def create(
    client: Client,
    login_name: Annotated[str, typer.Argument(help="What the person logs in with.", show_default=False)],
    slug: Annotated[str, typer.Option(help="Part of paths; never changes. Default: from the login name.")] = "",
    name: Annotated[str, typer.Option(help="The name to show.")] = "",
    email: Annotated[str | None, typer.Option(help="Their e-mail address.", show_default=False)] = None,
    department: Annotated[str | None, typer.Option(help="Their department.", show_default=False)] = None,
    service: Annotated[bool, typer.Option("--service", help="A service: it has tokens, and never logs in.")] = False,
    no_apps: Annotated[
        bool, typer.Option("--no-apps", help="Without the role to use every app that is shown to them.")
    ] = False,
) -> CommandResult:
    """Create an account."""
    user = client.users.create(
        login_name,
        slug=slug,
        display_name=name,
        email=email,
        department=department,
        service=service,
        member=not no_apps,
    )
    return CommandResult(user, f"Created the account of {user.slug}, who logs in as {user.login_name}.")


@users.command("list")
@command
def list_(
    client: Client,
    department: Annotated[str | None, typer.Option(help="Only people of this department.", show_default=False)] = None,
) -> CommandResult:
    """List the accounts."""
    found: list[UserView] = []
    after: str | None = ""
    while after is not None:
        page = client.users.list(after=after, department=department, limit=1000)
        found += page.users
        after = page.next_after
    rows = TableRows(
        columns=("SLUG", "LOGIN NAME", "NAME", "DEPARTMENT", "STATE"),
        rows=((each.slug, each.login_name, each.display_name, each.department or "", _state(each)) for each in found),
        empty="There are no accounts.",
    )
    return CommandResult(found, rows)


@users.command("show")
@command
def show(client: Client, user: User) -> CommandResult:
    """Show an account and its roles."""
    found = client.users.get(user)
    held = client.roles.list_bindings(user=user, limit=1000).bindings
    text = f"{found.slug}  {found.login_name}  {found.display_name}  {found.department or ''}  {_state(found)}\n"
    text += "\n".join(f"{each.role} in {each.scope}" for each in held)
    return CommandResult({"user": found, "roles": held}, text.rstrip())


@users.command("change")
@command
def change(
    client: Client,
    user: User,
    login_name: Annotated[str | None, typer.Option(help="Another login name.", show_default=False)] = None,
    name: Annotated[str | None, typer.Option(help="Another name to show.", show_default=False)] = None,
    email: Annotated[str | None, typer.Option(help="Another e-mail address; empty: none.", show_default=False)] = None,
    department: Annotated[str | None, typer.Option(help="Another department; empty: none.", show_default=False)] = None,
) -> CommandResult:
    """Change an account. Its slug stays."""
    found = client.users.update(user, login_name=login_name, display_name=name, email=email, department=department)
    return CommandResult(found, f"Changed the account of {found.slug}.")


@users.command("disable")
@command
def disable(client: Client, user: User) -> CommandResult:
    """Lock somebody out within a second: tokens, logins, streams, and what agents do for them."""
    found = client.users.update(user, disabled=True)
    return CommandResult(found, f"Disabled the account of {found.slug}.")


@users.command("enable")
@command
def enable(client: Client, user: User) -> CommandResult:
    """Let somebody in again."""
    found = client.users.update(user, disabled=False)
    return CommandResult(found, f"Enabled the account of {found.slug}.")


@users.command("invite")
@command
def invite(client: Client, user: User) -> CommandResult:
    """Print an address where a person chooses a password. It is printed once, and works once."""
    link = client.users.invite(user)
    return CommandResult(link, f"{link.url}\nGood until {local_day(link.expires_at)}. Earlier ones do not work.")


@users.command("reset-password")
@command
def reset_password(client: Client, user: User) -> CommandResult:
    """Take a password away, log the person out everywhere, and print an address to choose another at."""
    link = client.users.reset_password(user)
    return CommandResult(link, f"{link.url}\nGood until {local_day(link.expires_at)}. The old password is gone.")


@users.command("logout")
@command
def logout(client: Client, user: User) -> CommandResult:
    """Log a person out of every browser. Their tokens stay."""
    ended = client.users.log_out(user)
    return CommandResult(ended, f"Logged {user} out of {ended.ended} browsers.")


@users.command("identities")
@command
def identities(client: Client, user: User) -> CommandResult:
    """List the login providers that an account is linked to."""
    found = client.users.identities(user).identities
    rows = TableRows(
        columns=("PROVIDER", "SUBJECT", "SINCE"),
        rows=((each.issuer, each.subject, local_day(each.linked_at)) for each in found),
        empty=f"{user} is not linked to a login provider.",
    )
    return CommandResult(found, rows)


@users.command("unlink")
@command
def unlink(
    client: Client,
    user: User,
    issuer: Annotated[str, typer.Argument(help="The provider's address, as `user identities` shows it.")],
) -> CommandResult:
    """Unlink somebody from a login provider, and log them out of every browser."""
    ended = client.users.unlink(user, issuer)
    return CommandResult(ended, f"Unlinked {user} from {issuer}, and logged {user} out of {ended.ended} browsers.")


@departments.command("list")
@command
def list_departments(client: Client) -> CommandResult:
    """List the departments."""
    found = client.departments.list().departments
    rows = TableRows(
        columns=("DEPARTMENT", "TITLE", "PEOPLE"),
        rows=((each.name, each.title, str(each.people)) for each in found),
        empty="There are no departments. Create one: contextbase department create NAME",
    )
    return CommandResult(found, rows)


@departments.command("create")
@command
def create_department(
    client: Client, department: Department, title: Annotated[str, typer.Option(help="What to show.")] = ""
) -> CommandResult:
    """Create a department."""
    made = client.departments.create(department, title=title)
    return CommandResult(made, f"Created the department {made.name}.")


@departments.command("rename")
@command
def rename_department(
    client: Client,
    department: Department,
    title: Annotated[str, typer.Argument(help="What to show from now on.", show_default=False)],
) -> CommandResult:
    """Give a department another title. Its name stays."""
    changed = client.departments.rename(department, title)
    return CommandResult(changed, f"The department {changed.name} is now titled {changed.title}.")


@departments.command("delete")
@command
def delete_department(client: Client, department: Department) -> CommandResult:
    """Delete a department that nobody is in."""
    client.departments.delete(department)
    return CommandResult({"deleted": department}, f"Deleted the department {department}.")


@roles.command("list")
@command
def list_roles(
    client: Client,
    user: Annotated[str | None, typer.Option(help="Only the roles of this person.", show_default=False)] = None,
    scope: Annotated[str | None, typer.Option(help="Only the roles in this scope.", show_default=False)] = None,
) -> CommandResult:
    """List who has which role where."""
    found: list[RoleBindingView] = []
    offset: int | None = 0
    while offset is not None:
        page = client.roles.list_bindings(user=user, scope=scope, offset=offset, limit=1000)
        found += page.bindings
        offset = page.next_offset
    rows = TableRows(
        columns=("PERSON", "ROLE", "SCOPE", "GIVEN BY"),
        rows=((each.user, each.role, each.scope, each.granted_by) for each in found),
        empty="Nobody has a role. Give one: contextbase role grant PERSON ROLE SCOPE",
    )
    return CommandResult(found, rows)


@roles.command("grant")
@command
def grant(client: Client, user: User, role: RoleText, scope: Scope = "platform") -> CommandResult:
    """Give a person a role."""
    changed = client.roles.grant(user, _role(role), scope)
    return CommandResult(changed, f"{changed.user} is now {changed.role} in {changed.scope}.")


@roles.command("revoke")
@command
def revoke(client: Client, user: User, role: RoleText, scope: Scope = "platform") -> CommandResult:
    """Take a role away. It takes effect within a second."""
    changed = client.roles.revoke(user, _role(role), scope)
    return CommandResult(changed, f"{changed.user} is not {changed.role} in {changed.scope}.")


@roles.command("describe")
@command
def describe(client: Client) -> CommandResult:
    """Show what each role gives."""
    found = client.roles.list().roles
    rows = TableRows(
        columns=("ROLE", "IN", "GIVES"),
        rows=((each.role, each.scope, " ".join(each.gives)) for each in found),
        empty="There are no roles.",
    )
    return CommandResult(found, rows)


@roles.command("explain")
@command
def explain(
    client: Client,
    user: User,
    action: Annotated[
        str,
        typer.Argument(
            help="use_app, manage_kb, manage_agentconfig, browse_files, edit_files, open_terminal, read, write, admin.",
            show_default=False,
        ),
    ],
    scope: Scope = "platform",
) -> CommandResult:
    """Show whether a person may do something somewhere, and which role decides it."""
    answer = client.roles.explain(user, _action(action), scope)
    may = "may" if answer.allowed else "may not"
    return CommandResult(answer, f"{answer.user} {may} do this ({answer.action} in {answer.scope}): {answer.reason}.")


def _state(user: UserView) -> str:
    kind = "owner" if user.is_owner else "service" if user.service else ""
    return " ".join(filter(None, (kind, "disabled" if user.disabled else "")))


def _role(text: str) -> RoleName:
    if text not in get_args(RoleName):
        raise InvalidInput(f"{text[:40]!r} is not a role: {', '.join(get_args(RoleName))}.")
    return cast("RoleName", text)


def _action(text: str) -> Right | Action:
    if text in set(Right):
        return Right(text)
    if text in set(Action):
        return Action(text)
    raise InvalidInput(f"{text[:40]!r} is not an action: {', '.join((*Right, *Action))}.")
