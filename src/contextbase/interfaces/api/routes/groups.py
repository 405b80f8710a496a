"""Groups of principals, which the rules of any project can name. Everything here needs 'admin' of all projects."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from contextbase.identity.model import PrincipalName
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.wire.policy import GroupCreate, GroupPage, GroupView, MembershipView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/groups", tags=["groups"], responses=problem_answers(404, 409))

GroupName = Annotated[str, Path(max_length=100, pattern=r"^[^\x00]*$")]
Member = Annotated[str, Path(description="For example agent:indexer.", max_length=120)]


@router.get("")
async def list_groups(
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    after: Annotated[str, Query(max_length=100, pattern=r"^[^\x00]*$")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> GroupPage:
    """Groups with their members, by name. They are shared by all projects."""
    found = await services.policies.groups(caller, after=after, limit=limit + 1)
    page = [GroupView(name=name, members=[str(member) for member in members]) for name, members in found[:limit]]
    return GroupPage(groups=page, next_after=page[-1].name if len(found) > limit else None)


@router.post("", status_code=201)
async def create_group(body: GroupCreate, caller: AuthenticatedCaller, services: AuthenticatedServices) -> GroupView:
    """Make an empty group."""
    await services.policies.create_group(caller, body.name)
    return GroupView(name=body.name, members=[])


@router.put("/{group}/members/{principal}")
async def add_member(
    group: GroupName, principal: Member, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> MembershipView:
    """Put a principal into a group."""
    name = await services.policies.add_member(caller, group, PrincipalName.parse(principal))
    return MembershipView(group=group, principal=str(name), member=True)


@router.delete("/{group}/members/{principal}")
async def remove_member(
    group: GroupName, principal: Member, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> MembershipView:
    """Take a principal out of a group."""
    name = await services.policies.remove_member(caller, group, PrincipalName.parse(principal))
    return MembershipView(group=group, principal=str(name), member=False)
