"""What a login provider says about somebody: a signed ID token, and what it has to hold. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeGuard

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key
from joserfc.jws import extract_compact

from contextbase.errors import Unauthenticated

__all__ = ["ALGORITHMS", "IdTokenClaims", "checked_claims", "key_id_of"]

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a provider's private key alone: neither `none`, nor a secret that both sides know."""

_LEEWAY_SECONDS: Final = 60
_LONGEST_SUBJECT: Final = 255


@dataclass(frozen=True, kw_only=True, slots=True)
class IdTokenClaims:
    issuer: str
    subject: str  # the provider's name for the person, which never changes
    verified_email: str | None  # None as well when the provider does not say that it checked it
    preferred_name: str
    display_name: str


def key_id_of(token: str) -> str | None:
    """Which key signed it, as the token says; raises `Unauthenticated` for what is not a signed token."""
    try:
        header = extract_compact(token.encode()).headers()
    except (JoseError, ValueError, UnicodeError) as error:
        raise _refused("its answer is not a signed token") from error
    if header.get("alg") not in ALGORITHMS:
        raise _refused("its answer is not signed in a way that this server accepts")
    key_id = header.get("kid")
    return key_id if isinstance(key_id, str) else None


def checked_claims(
    token: str, keys: Iterable[Key], *, issuer: str, client_id: str, nonce: str, now: datetime
) -> IdTokenClaims:
    """Raises `Unauthenticated` unless one of the keys signed it, for this client, for this login, and just now."""
    claims = _signed(token, keys)
    if claims.get("iss") != issuer:
        raise _refused("its answer names another issuer")
    _check_audience(claims, client_id)
    if claims.get("nonce") != nonce:
        raise _refused("its answer belongs to another login")
    moment = now.timestamp()
    expires, issued, begins = _time(claims, "exp"), _time(claims, "iat"), claims.get("nbf", 0)
    if expires <= moment - _LEEWAY_SECONDS:
        raise _refused("its answer has expired")
    if issued > moment + _LEEWAY_SECONDS or not _is_time(begins) or begins > moment + _LEEWAY_SECONDS:
        raise _refused("its answer is from the future; compare the clocks of both servers")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject.encode()) <= _LONGEST_SUBJECT or "\0" in subject:
        raise _refused("its answer names nobody")
    email = claims.get("email") if claims.get("email_verified") is True else None
    return IdTokenClaims(
        issuer=issuer,
        subject=subject,
        verified_email=email if isinstance(email, str) and email else None,
        preferred_name=_text(claims, "preferred_username"),
        display_name=_text(claims, "name"),
    )


def _signed(token: str, keys: Iterable[Key]) -> Mapping[str, Any]:
    for key in keys:
        try:
            return jwt.decode(token, key, algorithms=ALGORITHMS).claims
        except (JoseError, ValueError):
            continue  # signed by another key of the set, or by nobody that we know
    raise _refused("the signature of its answer is wrong")


def _check_audience(claims: Mapping[str, Any], client_id: str) -> None:
    audience = claims.get("aud")
    meant = [audience] if isinstance(audience, str) else audience
    if not isinstance(meant, list) or client_id not in meant:
        raise _refused("its answer is for another program")
    authorized = claims.get("azp")
    if (len(meant) > 1 or authorized is not None) and authorized != client_id:
        raise _refused("its answer was made for another program")


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if not _is_time(value):
        raise _refused(f"its answer has no {name}")
    return float(value)


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _refused(reason: str) -> Unauthenticated:
    return Unauthenticated(f"The login provider was not believed: {reason}. Start again from the login page.")
