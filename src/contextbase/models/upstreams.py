"""Which model service answers a request."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from contextbase.models.model import ModelContext, ModelProtocol
from contextbase.models.ports import ModelRequest, ModelTransport

__all__ = ["ChosenUpstream", "FixedUpstreams", "Upstreams"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenUpstream:
    name: str
    transport: ModelTransport


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
        names = dict.fromkeys(name for name in (context.main_model, context.small_model) if name)
        return model_list_body(names, protocol)


def model_list_body(names: Mapping[str, object], protocol: ModelProtocol) -> bytes:
    if protocol is ModelProtocol.ANTHROPIC:
        models = [{"type": "model", "id": name, "display_name": name} for name in names]
        edges = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
        return json.dumps({"data": models, "has_more": False, **edges}).encode()
    return json.dumps(
        {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "contextbase"} for name in names]}
    ).encode()
