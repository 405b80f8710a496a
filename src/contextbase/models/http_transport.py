"""Model services over HTTP. Here alone the key is put in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx

from contextbase.errors import Forbidden, ModelUpstreamUnavailable, Unavailable
from contextbase.models.addresses import AddressChecker
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
    def __init__(
        self, client: httpx.AsyncClient, address: UpstreamAddress, checker: AddressChecker | None = None
    ) -> None:
        """With a checker it is connected to at an address that was checked, and to no other."""
        self._client = client
        self._address = address
        self._checker = checker

    @asynccontextmanager
    async def open(self, request: ModelRequest) -> AsyncIterator[ModelAnswer]:
        path = f"{request.path}{'?' if request.query else ''}{request.query}"
        response = await self._sent("POST", path, request.headers, request.body)
        try:
            yield ModelAnswer(status=response.status_code, headers=response.headers.raw, body=self._pieces(response))
        finally:
            await response.aclose()

    async def probe(self) -> int:
        """The status of a request that costs nothing: the list of models."""
        response = await self._sent("GET", "/v1/models", [], b"")
        await response.aclose()
        return response.status_code

    async def _sent(self, method: str, path: str, headers: HeaderList, body: bytes) -> httpx.Response:
        base = self._address.base_url.rstrip("/").removesuffix("/v1")
        try:
            url, own, extensions = httpx.URL(f"{base}{path}"), self._own_headers(headers), {}
            if self._checker is not None:
                found = await self._checker.resolve(url.host, url.port or (443 if url.scheme == "https" else 80))
                own = [*own, (b"host", url.netloc)]
                extensions = {"sni_hostname": url.host}  # whom the certificate must name
                url = url.copy_with(host=found.host)
            outgoing = self._client.build_request(
                method, url, headers=[*headers, *own], content=body, extensions=extensions
            )
            return await self._client.send(outgoing, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, Forbidden, Unavailable) as error:
            raise self._unavailable(error, "does not answer") from None

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
