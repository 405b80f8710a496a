"""What agents think with: the model gateway and the services behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from contextbase.bootstrap.foundation import Foundation
from contextbase.config import Settings
from contextbase.models.gateway import ModelGateway
from contextbase.models.http_transport import HttpTransport, UpstreamAddress, upstream_client
from contextbase.models.model import ModelProtocol
from contextbase.models.scripted import ScriptedModel
from contextbase.models.upstreams import ChosenUpstream, FixedUpstreams

__all__ = ["ModelServices", "open_model_services"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelServices:
    gateway: ModelGateway  # an ASGI application for `models.http_stream.serve`


@asynccontextmanager
async def open_model_services(foundation: Foundation) -> AsyncIterator[ModelServices]:
    async with upstream_client(idle_seconds=foundation.settings.models.idle_seconds) as client:
        upstreams = {
            address.protocol: ChosenUpstream(name=address.name, transport=HttpTransport(client, address))
            for address in _addresses(foundation.settings)
        }
        scripted = ChosenUpstream(name="scripted", transport=ScriptedModel())
        yield ModelServices(gateway=ModelGateway(upstreams=FixedUpstreams(upstreams, scripted)))


def _addresses(settings: Settings) -> list[UpstreamAddress]:
    """Those that the settings name."""
    models = settings.models
    named = [
        (ModelProtocol.ANTHROPIC, models.anthropic_url, models.anthropic_key),
        (ModelProtocol.OPENAI, models.openai_url, models.openai_key),
    ]
    return [
        UpstreamAddress(name=str(protocol), protocol=protocol, base_url=url, key=key.get_secret_value())
        for protocol, url, key in named
        if key is not None and url is not None
    ]
