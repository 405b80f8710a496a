"""Model services over HTTP. Here alone the key is put in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx

from contextbase.errors import ModelUpstreamUnavailable
from contextbase.models.model import ModelProtocol
from contextbase.models.ports import HeaderList, ModelAnswer, ModelRequest

__all__ = ["HttpTransport", "UpstreamAddress", "upstream_client"]

_ANTHROPIC_VERSION: Final = b"2023-06-01"
_CONNECT_SECONDS: Final = 15.0
_MOST_CONNECTIONS: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class UpstreamAddress:
    """Where a model service is, and what it wants to see."""

    name: str  # as users and administrators know it; safe in errors and logs
    protocol: ModelProtocol
    base_url: str
    key: str = field(default="", repr=False)


def upstream_client(*, idle_seconds: float) -> httpx.AsyncClient:
    """No limit on an answer's whole time: long answers are the work. One that falls silent is given up."""
    timeout = httpx.Timeout(idle_seconds, connect=_CONNECT_SECONDS, pool=None)
    limits = httpx.Limits(max_connections=_MOST_CONNECTIONS, max_keepalive_connections=100)
    return httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False, follow_redirects=False)


class HttpTransport:
    def __init__(self, client: httpx.AsyncClient, address: UpstreamAddress) -> None:
        self._client = client
        self._address = address

    @asynccontextmanager
    async def open(self, request: ModelRequest) -> AsyncIterator[ModelAnswer]:
        base = self._address.base_url.rstrip("/").removesuffix("/v1")
        url = f"{base}{request.path}{'?' if request.query else ''}{request.query}"
        headers = [*request.headers, *self._own_headers(request.headers)]
        try:
            outgoing = self._client.build_request("POST", url, headers=headers, content=request.body)
            response = await self._client.send(outgoing, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unavailable(error, "does not answer") from None
        try:
            yield ModelAnswer(status=response.status_code, headers=response.headers.raw, body=self._pieces(response))
        finally:
            await response.aclose()

    async def _pieces(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for piece in response.aiter_raw():
                yield piece
        except httpx.HTTPError as error:
            raise self._unavailable(error, "broke off its answer") from None

    def _own_headers(self, given: HeaderList) -> HeaderList:
        own = [(b"accept-encoding", b"identity")]  # the gateway reads along
        key = self._address.key.encode()
        if self._address.protocol is ModelProtocol.ANTHROPIC:
            if all(name != b"anthropic-version" for name, _ in given):
                own.append((b"anthropic-version", _ANTHROPIC_VERSION))
            return [*own, (b"x-api-key", key)] if key else own
        return [*own, (b"authorization", b"Bearer " + key)] if key else own

    def _unavailable(self, error: Exception, what: str) -> ModelUpstreamUnavailable:
        # The error's own text may quote headers; its kind says enough.
        return ModelUpstreamUnavailable(
            f"The model service '{self._address.name}' {what} ({type(error).__name__}). Try again later, or ask an "
            "administrator to look at it: `contextbase model test`.",
            upstream=self._address.name,
        )
