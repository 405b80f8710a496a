"""People, departments, and the roles that people hold."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contextbase.errors import InvalidInput
from contextbase.identity.roles import RoleBinding, check_slug
from contextbase.ids import PrincipalId

__all__ = ["Department", "HeldRole", "Person", "PersonChange", "PersonRequest"]

_LOGIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}")
_EMAIL: Final = re.compile(r"[^\s@]+@[^\s@]+")
_MOST_BYTES: Final = 400
_LONGEST_EMAIL: Final = 320


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    id: PrincipalId
    slug: str  # never changes: paths and scopes name it
    login_name: str
    display_name: str
    email: str | None
    department: str | None
    is_service: bool  # has tokens, and never logs in
    is_disabled: bool
    is_owner: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonRequest:
    """An account somebody asks for; checked when it is built."""

    login_name: str
    slug: str = ""  # "": made from the login name
    display_name: str = ""
    email: str | None = None
    department: str | None = None
    is_service: bool = False

    def __post_init__(self) -> None:
        _check_login_name(self.login_name)
        _check_display_name(self.display_name)
        _check_email(self.email)
        made = re.sub(r"[^a-z0-9._-]", "-", self.login_name.lower())[:100]
        object.__setattr__(self, "slug", check_slug(self.slug or made, "A person's slug"))


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonChange:
    """What is to change of an account; None leaves it as it is, and "" clears the e-mail or the department."""

    login_name: str | None = None
    display_name: str | None = None
    email: str | None = None
    department: str | None = None
    disabled: bool | None = None

    def __post_init__(self) -> None:
        if self.login_name is not None:
            _check_login_name(self.login_name)
        if self.display_name is not None:
            _check_display_name(self.display_name)
        _check_email(self.email or None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Department:
    name: str  # never changes: scopes name it
    title: str
    people: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldRole:
    person: str  # the slug
    binding: RoleBinding
    place: str  # the scope as people name it: a project by its name
    granted_by: str
    granted_at: datetime


def _check_login_name(name: str) -> None:
    if not _LOGIN_NAME.fullmatch(name):
        raise InvalidInput("A login name has 1 to 200 letters, digits or ._@+- and starts with a letter or digit.")


def _check_display_name(name: str) -> None:
    if len(name.encode()) > _MOST_BYTES or not name.isprintable():
        raise InvalidInput(f"A display name has at most {_MOST_BYTES} printable bytes.")


def _check_email(email: str | None) -> None:
    if email is not None and (len(email.encode()) > _LONGEST_EMAIL or not _EMAIL.fullmatch(email)):
        raise InvalidInput("An e-mail address looks like name@example.com.")
