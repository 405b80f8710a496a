"""The settings of a login provider."""

from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from contextbase.config.groups import HttpUrl, SettingsGroup

__all__ = ["OidcSettings"]


class OidcSettings(SettingsGroup):
    """Logging in by a provider. Without an issuer there is none of it."""

    prefix: ClassVar[str] = "oidc_"

    issuer: HttpUrl = Field(
        default=None,
        description="URL of an OpenID Connect provider that people log in by (https, or http on this machine); unset: "
        "there is none.",
    )
    client_id: str | None = Field(
        default=None, description="What that provider calls this server.", min_length=1, max_length=400
    )
    client_secret: SecretStr | None = Field(
        default=None, description="The secret that the provider gave this server; unset: PKCE alone."
    )
    name: str = Field(
        default="", description="The provider's name on the login page; unset: the issuer's host.", max_length=60
    )
    scopes: str = Field(
        default="openid email profile", description="What is asked of the provider.", pattern=r"^openid( [!-~]+)*$"
    )
    create_people: bool = Field(
        default=False,
        description="Give somebody who logs in by the provider for the first time an account; else one has to exist "
        "with the e-mail address that the provider verified.",
    )

    @field_validator("issuer")
    @classmethod
    def _is_private(cls, value: str | None) -> str | None:
        place = urlsplit(value or "https://")
        if place.scheme != "https" and place.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError("must be an https:// URL")
        return value
