"""A project over the HTTP API, and short ways to use it."""

from typing import Any

import httpx
from tests.support.api import Api

__all__ = ["API", "Project", "write"]

API = "/api/v1"


class Project:
    """Used as the server's owner, or as `who`: somebody's token."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name

    async def call(self, method: str, route: str, who: str | None = None, **options: Any) -> httpx.Response:
        headers = options.pop("headers", {}) | (self.api.as_bearer(who) if who else {})
        return await self.api.client.request(method, f"{API}/{route}", headers=headers, **options)

    async def get(self, route: str, who: str | None = None, **query: Any) -> httpx.Response:
        return await self.call("GET", route, who, params={"project": self.name} | query)

    async def commit(self, *changes: dict[str, Any], who: str | None = None, **fields: Any) -> httpx.Response:
        body = {"project": self.name, "changes": list(changes), "base_seq": 0} | fields
        return await self.call("POST", "commits", who, json=body)

    async def write(self, path: str, text: str, base: int = 0, who: str | None = None) -> dict[str, Any]:
        answer = await self.commit(write(path, text), base_seq=base, who=who)
        assert answer.status_code == 200, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def checkout(self, who: str | None = None, **fields: Any) -> httpx.Response:
        return await self.call("POST", "checkouts", who, json={"project": self.name} | fields)

    async def paths(self, who: str | None = None, **fields: Any) -> list[str]:
        return [entry["path"] for entry in (await self.checkout(who, **fields)).json()["entries"]]

    async def rule(self, subject: str, pattern: str, level: str) -> None:
        body = {"project": self.name, "subject": subject, "pattern": pattern, "level": level}
        answer = await self.call("PUT", "policies/rules", json=body)
        assert answer.status_code == 200, answer.text

    async def token(self, name: str, **fields: Any) -> str:
        return str((await self.api.token(principal=name, project=self.name, **fields))["secret"])


def write(path: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"action": "write", "path": path, "text": text} | fields
