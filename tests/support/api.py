"""The HTTP API as bootstrapped, in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI

from contextbase.bootstrap import CoreServices, open_services
from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.errors import BlobCorrupted, Misconfigured
from contextbase.interfaces.api.app import create_app
from contextbase.interfaces.api.authentication import COOKIE

__all__ = ["BROKEN_ROUTES", "LOGIN_ROUTES", "MAX_BODY", "Api", "assert_problem", "opened_api", "url_of"]

MAX_BODY = 4096
BROKEN_ROUTES = {"/broken", "/misconfigured", "/damaged"}
"""Routes that fail, which only tests have."""
LOGIN_ROUTES = {"/login", "/login/ways", "/login/oidc", "/login/oidc/callback"}
"""For those who are not logged in."""


@dataclass(frozen=True, kw_only=True)
class Api:
    app: FastAPI
    services: CoreServices
    owner_secret: str
    client: httpx.AsyncClient  # as the owner
    stranger: httpx.AsyncClient  # without a token

    def as_bearer(self, secret: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {secret}"}

    async def login_cookie(self) -> str:
        """Of a browser that is logged in as the owner."""
        return f"{COOKIE}={await self.services.people.logins.start_with_token(self.owner_secret, origin='')}"

    async def token(self, **fields: Any) -> dict[str, Any]:
        answer = await self.client.post("/api/v1/tokens", json={"principal": "somebody"} | fields)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made


@asynccontextmanager
async def opened_api(settings: Settings) -> AsyncIterator[Api]:
    async with open_services(settings) as services:
        app = create_app(services)

        @app.get("/broken")
        async def broken() -> None:
            raise ZeroDivisionError("the launch code is 0000")

        @app.get("/misconfigured")
        async def misconfigured() -> None:
            raise Misconfigured("The password of db.internal is wrong.")

        @app.get("/damaged")
        async def damaged() -> None:
            raise BlobCorrupted("/var/lib/contextbase/blobs/ab is not what it was.")

        secret = await services.core.identity.ensure_owner(None)
        assert secret
        transport = httpx.ASGITransport(app)
        async with (
            httpx.AsyncClient(
                transport=transport, base_url="http://api", headers={"Authorization": f"Bearer {secret}"}
            ) as client,
            httpx.AsyncClient(transport=transport, base_url="http://api") as stranger,
        ):
            yield Api(app=app, services=services.core, owner_secret=secret, client=client, stranger=stranger)


def url_of(address: DatabaseAddress) -> str:
    return f"postgresql://{address.user}@/{address.database}?host={address.socket_folder}"


def assert_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["title"]
    assert problem["detail"].endswith("."), problem["detail"]
    assert problem["trace_id"] == answer.headers["x-trace-id"]
    return problem
