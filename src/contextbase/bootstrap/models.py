"""What agents think with: the model gateway and the services behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from contextbase.bootstrap.foundation import Foundation
from contextbase.config import Settings
from contextbase.identity.repository import IdentityRepository
from contextbase.models.catalog import ModelCatalog
from contextbase.models.egress.policy import EgressPolicy
from contextbase.models.egress.proxy import EgressProxy
from contextbase.models.gateway import ModelGateway
from contextbase.models.http_transport import UpstreamAddress, upstream_client
from contextbase.models.ledger import DatabaseLedger
from contextbase.models.model import ModelProtocol
from contextbase.models.probe import UpstreamProbe
from contextbase.models.remote_mcp import RemoteMcp
from contextbase.models.repository import ModelRepository
from contextbase.models.scripted import ScriptedModel
from contextbase.models.sealing import KeySealer
from contextbase.models.stream_apps import StreamApps
from contextbase.models.upstreams import StoredUpstreams

__all__ = ["ModelServices", "open_model_services"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelServices:
    gateway: ModelGateway  # an ASGI application for `models.http_stream.serve`
    catalog: ModelCatalog
    probe: UpstreamProbe
    ledger: DatabaseLedger
    egress: EgressPolicy
    egress_proxy: EgressProxy
    remote_mcp: RemoteMcp
    stream_apps: StreamApps


@asynccontextmanager
async def open_model_services(foundation: Foundation) -> AsyncIterator[ModelServices]:
    settings, database, repository = foundation.settings.models, foundation.database, ModelRepository()
    sealer = KeySealer(foundation.audit_key.secret)
    egress = EgressPolicy(database=database, repository=repository, audit=foundation.audit, clock=foundation.clock)
    configured = {address.protocol: address for address in _addresses(foundation.settings)}
    ledger = DatabaseLedger(
        database=database,
        repository=repository,
        clock=foundation.clock,
        run_budget=None if settings.run_budget is None else round(settings.run_budget * 1_000_000),
    )
    async with upstream_client(idle_seconds=settings.idle_seconds) as client:
        upstreams = StoredUpstreams(
            database=database,
            repository=repository,
            sealer=sealer,
            client=client,
            configured=configured,
            scripted=ScriptedModel(),
        )
        catalog = ModelCatalog(
            database=database,
            repository=repository,
            identity=IdentityRepository(),
            sealer=sealer,
            audit=foundation.audit,
            models_changed=upstreams.forget,
            clock=foundation.clock,
        )
        gateway = ModelGateway(upstreams=upstreams, ledger=ledger)
        probe = UpstreamProbe(catalog=catalog, sealer=sealer, client=client, configured=configured)
        stream_apps = StreamApps()
        stream_apps.register("model", gateway)
        yield ModelServices(
            gateway=gateway,
            catalog=catalog,
            probe=probe,
            ledger=ledger,
            egress=egress,
            egress_proxy=EgressProxy(hosts=egress),
            remote_mcp=RemoteMcp(client=client, hosts=egress),
            stream_apps=stream_apps,
        )
        await gateway.close()


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
