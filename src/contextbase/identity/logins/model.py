"""Logins of browsers, and secrets that are stored as hashes."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from contextbase.identity.model import Principal
from contextbase.ids import TokenId

__all__ = ["BrowserLogin", "LinkedIdentity", "PasswordLink", "hash_of", "new_secret"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserLogin:
    id: UUID
    principal: Principal
    token_id: TokenId | None  # of the token that it was made with
    rotated_at: datetime  # when its cookie was last replaced
    expires_at: datetime
    is_ended: bool
    is_previous: bool  # found by the cookie that was replaced last


@dataclass(frozen=True, kw_only=True, slots=True)
class PasswordLink:
    """For whoever has it to choose a password, once."""

    secret: str
    expires_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkedIdentity:
    """Who somebody is at a login provider."""

    issuer: str
    subject: str
    linked_at: datetime


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_of(secret: str) -> bytes:
    """A fast hash is right: the secret has 256 random bits, there is nothing to guess."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
