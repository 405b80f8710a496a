"""Bodies about people, departments and roles."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from contextbase.role_vocabulary import Right, Role
from contextbase.vocabulary import Action

__all__ = [
    "DepartmentCreate",
    "DepartmentPatch",
    "DepartmentView",
    "DepartmentsView",
    "RightView",
    "RoleBindingBody",
    "RoleBindingPage",
    "RoleBindingView",
    "RoleChanged",
    "RoleView",
    "RolesView",
    "UserCreate",
    "UserPage",
    "UserPatch",
    "UserView",
]

LoginName = Annotated[str, Field(description="What the person logs in with.", max_length=200)]
ScopeText = Annotated[
    str,
    Field(
        description="platform, app:NAME, project:NAME, project:APP/NAME, user:SLUG or department:NAME.", max_length=220
    ),
]


class UserCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    login_name: LoginName
    slug: str = Field("", description="Part of paths, and never changes; default: from the login name.", max_length=100)
    display_name: str = Field("", max_length=400)
    email: str | None = Field(None, max_length=320)
    department: str | None = Field(None, max_length=100)
    service: bool = Field(False, description="A service account: it has tokens, and never logs in.")
    member: bool = Field(True, description="Whether the person may use every app that is shown to them.")


class UserPatch(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    login_name: LoginName | None = None
    display_name: str | None = Field(None, max_length=400)
    email: str | None = Field(None, description="Empty: none.", max_length=320)
    department: str | None = Field(None, description="Empty: none.", max_length=100)
    disabled: bool | None = Field(None, description="Who is disabled is out within a second.")


class UserView(BaseModel):
    slug: str = Field(description="Never changes.")
    login_name: str
    display_name: str
    email: str | None
    department: str | None
    service: bool
    disabled: bool
    is_owner: bool
    created_at: datetime


class UserPage(BaseModel):
    users: list[UserView]
    next_after: str | None = Field(description="Pass as `after` for the next page; null on the last.")


class DepartmentCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Never changes.", max_length=100)
    title: str = Field("", max_length=400)


class DepartmentPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = Field(max_length=400)


class DepartmentView(BaseModel):
    name: str
    title: str
    people: int


class DepartmentsView(BaseModel):
    departments: list[DepartmentView]


class RoleView(BaseModel):
    role: Role
    scope: str = Field(description="The kind of scope that it is for.")
    gives: list[Right | Action]


class RolesView(BaseModel):
    roles: list[RoleView]


class RoleBindingBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user: str = Field(description="The person's slug.", max_length=100)
    role: Role
    scope: ScopeText = "platform"


class RoleBindingView(BaseModel):
    user: str
    role: Role
    scope: str
    granted_by: str
    granted_at: datetime


class RoleBindingPage(BaseModel):
    bindings: list[RoleBindingView]
    next_offset: int | None = Field(description="Pass as `offset` for the next page; null on the last.")


class RoleChanged(BaseModel):
    user: str
    role: Role
    scope: str
    changed: bool = Field(description="False: it was so already.")


class RightView(BaseModel):
    """Whether a person may do something somewhere."""

    user: str
    action: Right | Action
    scope: str
    allowed: bool
    reason: str = Field(description="What decided it.")
