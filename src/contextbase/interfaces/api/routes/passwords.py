"""How people log in: invitations, new starts, one's own password, links to login providers; and who is logged out."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from contextbase.interfaces.api.authentication import LOGIN, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.wire.login import IdentitiesView, IdentityView, LoggedOut, PasswordLinkView, PasswordPut

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["people"], responses=problem_answers(404))

Slug = Annotated[str, Path(description="The person's slug.", max_length=100, pattern=r"^[^\x00]*$")]


@router.post("/users/{user}/invitation", status_code=201)
async def invite(
    user: Slug, request: Request, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> PasswordLinkView:
    """Make a link by which a person chooses a password. The links that were made before are no good any more."""
    return await _link(request, caller, services, user, reset=False)


@router.post("/users/{user}/password-reset", status_code=201)
async def reset_password(
    user: Slug, request: Request, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> PasswordLinkView:
    """Take a person's password away, log them out everywhere, and make a link by which they choose another."""
    return await _link(request, caller, services, user, reset=True)


@router.post("/users/{user}/logout")
async def log_out_user(user: Slug, caller: AuthenticatedCaller, services: AuthenticatedServices) -> LoggedOut:
    """Log a person out of every browser. Their tokens stay."""
    return LoggedOut(ended=await services.people.passwords.log_out(caller, user))


@router.get("/users/{user}/identities")
async def list_identities(user: Slug, caller: AuthenticatedCaller, services: AuthenticatedServices) -> IdentitiesView:
    """Who a person is at login providers. People see their own."""
    found = await services.people.identities.list(caller, user)
    views = [IdentityView(issuer=each.issuer, subject=each.subject, linked_at=each.linked_at) for each in found]
    return IdentitiesView(identities=views)


@router.delete("/users/{user}/identities", responses=problem_answers(409))
async def unlink_identity(
    user: Slug,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    issuer: Annotated[str, Query(description="The address of the provider.", max_length=2000, pattern=r"^[^\x00]+$")],
) -> LoggedOut:
    """Unlink a person from a login provider, and log them out of every browser. The last way to log in stays."""
    return LoggedOut(ended=await services.people.identities.unlink(caller, user, issuer))


@router.put("/me/password", responses=problem_answers(429))
async def change_password(
    body: PasswordPut, request: Request, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> LoggedOut:
    """Change your own password. Every other browser is logged out."""
    keep = request.scope["state"].get(LOGIN)
    return LoggedOut(ended=await services.people.passwords.change(caller, body.old, body.new, keep=keep))


async def _link(
    request: Request, caller: AuthenticatedCaller, services: AuthenticatedServices, user: str, *, reset: bool
) -> PasswordLinkView:
    link = await services.people.passwords.make_link(caller, user, reset=reset)
    base = services.settings.server.public_url or str(request.base_url)
    # In the part of an address that browsers do not send: no log and no other site sees it.
    return PasswordLinkView(url=f"{str(base).rstrip('/')}/#link={link.secret}", expires_at=link.expires_at)
