"""Which model service answers a request, and at what price."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import httpx

from contextbase.db.database import Database
from contextbase.db.ttl_cache import TtlCache
from contextbase.models.addresses import AddressChecker
from contextbase.models.dialects import GatewayError, GatewayProblem
from contextbase.models.http_transport import HttpTransport, UpstreamAddress
from contextbase.models.model import AllowedModel, ModelContext, ModelProtocol, ModelUpstream
from contextbase.models.ports import ModelRequest, ModelTransport
from contextbase.models.prices import ModelPrice, built_in_price, dearest_price
from contextbase.models.repository import ModelRepository
from contextbase.models.sealing import KeySealer

__all__ = ["FREE", "ChosenUpstream", "FixedUpstreams", "StoredUpstreams", "Upstreams", "opened_address"]

FREE: Final = ModelPrice(input=0, output=0, cache_read=0, cache_write=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenUpstream:
    name: str
    transport: ModelTransport
    price: ModelPrice = FREE
    names_requests: bool = False  # its request ids are its own, and never come twice


class Upstreams(Protocol):
    async def choose(self, context: ModelContext, request: ModelRequest) -> ChosenUpstream:
        """Raises `GatewayError` if the model may not be used."""
        ...

    async def model_list(self, context: ModelContext, protocol: ModelProtocol) -> bytes:
        """What `/v1/models` answers."""
        ...


class FixedUpstreams:
    """One upstream for each protocol; where there is none, the fallback answers."""

    def __init__(self, upstreams: Mapping[ModelProtocol, ChosenUpstream], fallback: ChosenUpstream) -> None:
        self._upstreams = upstreams
        self._fallback = fallback

    async def choose(self, context: ModelContext, request: ModelRequest) -> ChosenUpstream:
        del context
        return self._upstreams.get(request.dialect.protocol, self._fallback)

    async def model_list(self, context: ModelContext, protocol: ModelProtocol) -> bytes:
        return _model_list(_own(context), protocol)


class StoredUpstreams:
    """The user's, the project's or the platform's, as they were added; then those of the settings; then the scripted
    model."""

    def __init__(
        self,
        *,
        database: Database,
        repository: ModelRepository,
        sealer: KeySealer,
        client: httpx.AsyncClient,
        configured: Mapping[ModelProtocol, UpstreamAddress],
        scripted: ModelTransport,
    ) -> None:
        self._database = database
        self._repository = repository
        self._sealer = sealer
        self._client = client
        self._configured = configured
        self._scripted = ChosenUpstream(name="scripted", transport=scripted)
        self._models: TtlCache[None, tuple[AllowedModel, ...]] = TtlCache()

    async def choose(self, context: ModelContext, request: ModelRequest) -> ChosenUpstream:
        protocol = request.dialect.protocol
        async with self._database.connection() as connection:
            stored = await self._repository.upstream_for(connection, protocol, context.project_id, context.owner.id)
        if stored is None and protocol not in self._configured:
            return self._scripted
        price = await self._price(protocol, request.model)
        if stored is None:
            address = self._configured[protocol]
            transport = HttpTransport(self._client, address)
            return ChosenUpstream(name=address.name, transport=transport, price=price, names_requests=True)
        checker = None if stored.may_be_private else AddressChecker()
        transport = HttpTransport(self._client, opened_address(self._sealer, stored), checker)
        return ChosenUpstream(name=stored.name, transport=transport, price=price, names_requests=True)

    async def model_list(self, context: ModelContext, protocol: ModelProtocol) -> bytes:
        allowed = [model.name for model in await self._allowed() if model.protocol is protocol]
        return _model_list(allowed or _own(context), protocol)

    def forget(self) -> None:
        """The list of models was changed here."""
        self._models.forget()

    async def _price(self, protocol: ModelProtocol, name: str) -> ModelPrice:
        """Raises `GatewayError` if the model is not allowed. While none is listed, those with a built-in price are."""
        listed = {model.name: model for model in await self._allowed() if model.protocol is protocol}
        built_in = built_in_price(protocol, name)
        if name not in listed if listed else built_in is None:
            raise GatewayError(
                GatewayProblem.MODEL_NOT_ALLOWED,
                f"The model '{name[:200]}' is not allowed here. An administrator can add it: `contextbase model add`.",
            )
        prices = listed[name].prices if listed else None
        if prices is not None:
            return ModelPrice(input=prices[0], output=prices[1], cache_read=prices[2], cache_write=prices[3])
        return built_in or dearest_price(protocol)

    async def _allowed(self) -> tuple[AllowedModel, ...]:
        models = self._models.get(None)
        if models is None:
            async with self._database.connection() as connection:
                models = tuple(await self._repository.models(connection))
            self._models.put(None, models)
        return models


def opened_address(sealer: KeySealer, upstream: ModelUpstream) -> UpstreamAddress:
    key = "" if upstream.sealed_key is None else sealer.open(upstream.id, upstream.sealed_key)
    return UpstreamAddress(name=upstream.name, protocol=upstream.protocol, base_url=upstream.base_url, key=key)


def _own(context: ModelContext) -> list[str]:
    return [name for name in dict.fromkeys((context.main_model, context.small_model)) if name]


def _model_list(names: Iterable[str], protocol: ModelProtocol) -> bytes:
    if protocol is ModelProtocol.ANTHROPIC:
        models = [{"type": "model", "id": name, "display_name": name} for name in names]
        edges = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
        return json.dumps({"data": models, "has_more": False, **edges}).encode()
    listed = [{"id": name, "object": "model", "owned_by": "contextbase"} for name in names]
    return json.dumps({"object": "list", "data": listed}).encode()
