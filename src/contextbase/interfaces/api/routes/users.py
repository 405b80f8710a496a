"""People's accounts and departments, for administrators of the platform. A person may read their own account."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from contextbase.identity.people.model import Department, Person, PersonChange, PersonRequest
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.wire.people import (
    DepartmentCreate,
    DepartmentPatch,
    DepartmentsView,
    DepartmentView,
    UserCreate,
    UserPage,
    UserPatch,
    UserView,
)

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["people"], responses=problem_answers(404, 409))

Slug = Annotated[str, Path(description="The person's slug.", max_length=100, pattern=r"^[^\x00]*$")]
DepartmentName = Annotated[str, Path(max_length=100, pattern=r"^[^\x00]*$")]


@router.get("/users")
async def list_users(
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    after: Annotated[str, Query(max_length=100, pattern=r"^[^\x00]*$")] = "",
    department: Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> UserPage:
    """People by slug."""
    found = await services.people.accounts.list(caller, after=after, limit=limit + 1, department=department)
    page = [_view(person) for person in found[:limit]]
    return UserPage(users=page, next_after=page[-1].slug if len(found) > limit else None)


@router.post("/users", status_code=201)
async def create_user(body: UserCreate, caller: AuthenticatedCaller, services: AuthenticatedServices) -> UserView:
    """Make an account for a person or a service."""
    request = PersonRequest(
        login_name=body.login_name,
        slug=body.slug,
        display_name=body.display_name,
        email=body.email,
        department=body.department,
        is_service=body.service,
    )
    return _view(await services.people.accounts.create(caller, request, as_member=body.member))


@router.get("/users/{user}")
async def get_user(user: Slug, caller: AuthenticatedCaller, services: AuthenticatedServices) -> UserView:
    """One account."""
    return _view(await services.people.accounts.get(caller, user))


@router.patch("/users/{user}")
async def change_user(
    user: Slug, body: UserPatch, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> UserView:
    """Change an account, or disable it: then its tokens, logins, streams and sessions end within a second."""
    change = PersonChange(
        login_name=body.login_name,
        display_name=body.display_name,
        email=body.email,
        department=body.department,
        disabled=body.disabled,
    )
    return _view(await services.people.accounts.change(caller, user, change))


@router.get("/departments")
async def list_departments(caller: AuthenticatedCaller, services: AuthenticatedServices) -> DepartmentsView:
    """All departments, by name."""
    found = await services.people.accounts.departments(caller)
    return DepartmentsView(departments=[_department(each) for each in found])


@router.post("/departments", status_code=201)
async def create_department(
    body: DepartmentCreate, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> DepartmentView:
    """Make a department."""
    return _department(await services.people.accounts.create_department(caller, body.name, body.title))


@router.patch("/departments/{department}")
async def rename_department(
    department: DepartmentName, body: DepartmentPatch, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> DepartmentView:
    """Give a department another title."""
    return _department(await services.people.accounts.rename_department(caller, department, body.title))


@router.delete("/departments/{department}", status_code=204)
async def delete_department(
    department: DepartmentName, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> None:
    """Remove a department that nobody is in."""
    await services.people.accounts.delete_department(caller, department)


def _view(person: Person) -> UserView:
    return UserView(
        slug=person.slug,
        login_name=person.login_name,
        display_name=person.display_name,
        email=person.email,
        department=person.department,
        service=person.is_service,
        disabled=person.is_disabled,
        is_owner=person.is_owner,
        created_at=person.created_at,
    )


def _department(found: Department) -> DepartmentView:
    return DepartmentView(name=found.name, title=found.title, people=found.people)
