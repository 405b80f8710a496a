"""A login provider over HTTP: what it says of itself, its keys, and the exchange of a code for an ID token."""

import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet

from contextbase.db.ttl_cache import TtlCache
from contextbase.errors import Unauthenticated, Unavailable

__all__ = ["OpenIdClient", "OpenIdProvider", "ProviderDocument"]

_log = logging.getLogger(__name__)

_KEPT_SECONDS: Final = 600.0
_TIMEOUT_SECONDS: Final = 10.0
_MOST_BYTES: Final = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenIdClient:
    """This server as its provider knows it."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)  # None: PKCE alone
    scopes: str = "openid email profile"
    name: str = ""  # of the provider, on the button
    creates_people: bool = False  # whether somebody new gets an account


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderDocument:
    """What a provider publishes about itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    takes_basic: bool  # takes the client's secret in a header; else in the body


class OpenIdProvider:
    """What it published is remembered for ten minutes. Keys are read again when a token names one that is new."""

    def __init__(self, client: OpenIdClient) -> None:
        self.client = client
        self._documents: TtlCache[str, ProviderDocument] = TtlCache(seconds=_KEPT_SECONDS)
        self._keys: TtlCache[str, Sequence[Key]] = TtlCache(seconds=_KEPT_SECONDS)

    async def document(self) -> ProviderDocument:
        """Raises `Unavailable` when the provider does not answer, or is not the one that was asked for."""
        known = self._documents.get(self.client.issuer)
        if known is None:
            known = self._checked(await self._get(f"{self.client.issuer}/.well-known/openid-configuration"))
            self._documents.put(self.client.issuer, known)
        return known

    async def keys(self, key_id: str | None) -> Sequence[Key]:
        """Those that may have signed a token that names this key."""
        known = self._keys.get(self.client.issuer)
        if known is None or not (found := _named(known, key_id)):
            known = await self._read_keys()
            found = _named(known, key_id)
        return found

    async def id_token(self, code: str, *, verifier: str, redirect_uri: str) -> str:
        """What the provider gives for a code. Raises `Unauthenticated` when it does not take the code."""
        document, client = await self.document(), self.client
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Accept": "application/json"}
        if client.client_secret is not None and document.takes_basic:
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            body["client_id"] = client.client_id
            if client.client_secret is not None:
                body["client_secret"] = client.client_secret
        async with _http() as http:
            try:
                answer = await http.post(document.token_endpoint, data=body, headers=headers)
            except httpx.HTTPError as error:
                raise _silent(client.issuer) from error
        found = _json(answer)
        if answer.status_code != httpx.codes.OK or not isinstance(found.get("id_token"), str):
            _log.warning("the login provider refused a code: %s %s", answer.status_code, str(found.get("error"))[:100])
            raise Unauthenticated("The login provider did not confirm this login. Start again from the login page.")
        return str(found["id_token"])

    async def _read_keys(self) -> Sequence[Key]:
        document = await self.document()
        found = await self._get(document.jwks_uri)
        try:
            keys = [key for key in KeySet.import_key_set({"keys": found["keys"]}) if key.get("use", "sig") == "sig"]
        except (JoseError, KeyError, TypeError, ValueError) as error:
            raise Unavailable(f"The login provider {self.client.issuer} has no keys that can be read.") from error
        self._keys.put(self.client.issuer, keys)
        return keys

    async def _get(self, url: str) -> Mapping[str, Any]:
        async with _http() as http:
            try:
                answer = await http.get(url, headers={"Accept": "application/json"})
            except httpx.HTTPError as error:
                raise _silent(self.client.issuer) from error
        if answer.status_code != httpx.codes.OK:
            raise _silent(self.client.issuer)
        return _json(answer)

    def _checked(self, found: Mapping[str, Any]) -> ProviderDocument:
        issuer = found.get("issuer")
        if not isinstance(issuer, str) or issuer.rstrip("/") != self.client.issuer:
            raise Unavailable(
                f"The login provider {self.client.issuer} says that it is another one. Check oidc_issuer."
            )
        places = [found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        wanted = {"https", urlsplit(self.client.issuer).scheme}
        if not all(isinstance(place, str) and urlsplit(place).scheme in wanted for place in places):
            raise Unavailable(f"The login provider {self.client.issuer} does not name all addresses that logins need.")
        authorization, token, jwks = map(str, places)
        ways = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        return ProviderDocument(
            issuer=issuer,
            authorization_endpoint=authorization,
            token_endpoint=token,
            jwks_uri=jwks,
            takes_basic="client_secret_basic" in ways,
        )


def _named(keys: Sequence[Key], key_id: str | None) -> Sequence[Key]:
    return [key for key in keys if key_id is None or key.kid == key_id]


def _http() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, follow_redirects=False)


def _json(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        found = answer.json() if len(answer.content) <= _MOST_BYTES else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _silent(issuer: str) -> Unavailable:
    return Unavailable(f"The login provider {issuer} does not answer as it should. Try again, or log in another way.")
