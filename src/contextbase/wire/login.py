"""Bodies about logging in."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "IdentitiesView",
    "IdentityView",
    "LoggedOut",
    "LoginCreate",
    "LoginWays",
    "LogoutCreate",
    "PasswordLinkView",
    "PasswordPut",
]


class LoginCreate(BaseModel):
    """A browser's login: with a login name or a link, and a password; or with a token."""

    model_config = ConfigDict(extra="forbid")

    login_name: str | None = Field(None, max_length=200)
    link: str | None = Field(None, description="The secret of an invitation, to choose a password by.", max_length=200)
    password: str | None = Field(None, max_length=1000)
    token: str | None = Field(None, max_length=200)


class LoginWays(BaseModel):
    """How people log in, beside passwords and tokens."""

    oidc: str | None = Field(description="The name of the login provider; null: there is none.")


class LogoutCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    everywhere: bool = False


class PasswordPut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    old: str = Field(max_length=1000)
    new: str = Field(description="At least 10 characters.", max_length=1000)


class PasswordLinkView(BaseModel):
    url: str = Field(description="For the person, to choose a password by, once. Shown this once.")
    expires_at: datetime


class IdentityView(BaseModel):
    """Who somebody is at a login provider."""

    issuer: str = Field(description="The address of the provider.")
    subject: str = Field(description="The name that the provider has for the person; it never changes.")
    linked_at: datetime


class IdentitiesView(BaseModel):
    identities: list[IdentityView]


class LoggedOut(BaseModel):
    ended: int = Field(description="How many browsers were logged out.")
