"""A small OpenID Connect provider on a real port, which can be told to lie about everything it signs."""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

__all__ = ["FakeOpenIdProvider", "opened_openid_provider", "unsigned", "with_secret"]

CLIENT_ID = "contextbase at work"
CLIENT_SECRET = "s3cret: with/odd+signs"

Claims = dict[str, Any]


@dataclass
class FakeOpenIdProvider:
    issuer: str = ""
    client_id: str = CLIENT_ID
    client_secret: str = CLIENT_SECRET
    person: Claims = field(default_factory=dict)  # who is logged in at the provider
    altered: Callable[[Claims], Claims] = dict
    signed: Callable[[Claims], str] | None = None  # another way to sign; None: by the newest key
    document: Claims = field(default_factory=dict)  # what it says of itself otherwise
    keys: list[RSAKey] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    read_keys: int = 0  # how often they were asked for

    def rotate(self) -> None:
        """A new key signs from now on, and the old ones are not published any more."""
        self.keys = [RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})]

    def honest(self) -> None:
        self.altered, self.signed = dict, None

    def sign(self, claims: Claims, *, key: Any = None, **header: str) -> str:
        signing = key or self.keys[-1]
        return jwt.encode({"alg": "RS256", "kid": self.keys[-1].kid} | header, claims, signing)

    def described(self) -> Claims:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        } | self.document

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser is sent back to: whoever is logged in agrees at once."""
        assert query["client_id"] == self.client_id
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.issuer, "session_state": "providers add things"}
        return f"{query['redirect_uri']}?{urlencode(back)}"

    def exchange(self, body: dict[str, str], authorization: str) -> Claims | None:
        """None: the code, the secret or the proof of PKCE is wrong."""
        given = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(given[0]), unquote_plus(given[2])) != (self.client_id, self.client_secret):
            return None
        asked = self.codes.pop(body.get("code", ""), None)
        if asked is None or asked["redirect_uri"] != body.get("redirect_uri"):
            return None
        if _encoded(hashlib.sha256(body["code_verifier"].encode()).digest()) != asked["code_challenge"]:
            return None
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.client_id, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        told = self.altered(claims | self.person)
        return {
            "access_token": "not used",
            "token_type": "Bearer",
            "id_token": self.signed(told) if self.signed else self.sign(told),
        }


def unsigned(claims: Claims) -> str:
    return f"{_parts({'alg': 'none', 'typ': 'JWT'}, claims)}."


def with_secret(claims: Claims, secret: bytes, **header: str | None) -> str:
    """By hand: libraries refuse to help with it."""
    parts = _parts({"alg": "HS256", "typ": "JWT"} | header, claims)
    return f"{parts}.{_encoded(hmac.digest(secret, parts.encode(), 'sha256'))}"


def _parts(header: Claims, claims: Claims) -> str:
    return ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@contextmanager
def opened_openid_provider() -> Iterator[FakeOpenIdProvider]:
    provider = FakeOpenIdProvider()
    provider.rotate()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if place.path == "/.well-known/openid-configuration":
                self._answer(provider.described())
            elif place.path == "/keys":
                provider.read_keys += 1
                self._answer({"keys": [key.as_dict(private=False) for key in provider.keys]})
            elif place.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(place.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(query))
                self.end_headers()
            else:
                self._answer({}, 404)

        def do_POST(self) -> None:
            body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            fields = {name: values[0] for name, values in body.items()}
            found = provider.exchange(fields, self.headers.get("Authorization", ""))
            if found is None:
                self._answer({"error": "invalid_grant"}, 400)
            else:
                self._answer(found)

        def _answer(self, body: Claims, status: int = 200) -> None:
            sent = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            """Not into the tests' output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield provider
        finally:
            server.shutdown()
