"""The model gateway on a real database, with services behind it that a test chooses."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
from tests.support.scripted_model import listening, model_context

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.identity.model import Action, Caller, PrincipalKind, TokenRequest
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import ProjectId, SystemClock
from contextbase.models.catalog import ModelCatalog
from contextbase.models.gateway import ModelGateway
from contextbase.models.http_transport import UpstreamAddress, upstream_client
from contextbase.models.ledger import DatabaseLedger
from contextbase.models.model import ModelContext, ModelProtocol
from contextbase.models.probe import UpstreamProbe
from contextbase.models.repository import ModelRepository
from contextbase.models.scripted import ScriptedModel
from contextbase.models.sealing import KeySealer
from contextbase.models.upstreams import StoredUpstreams
from contextbase.storage.projects import ProjectService

__all__ = ["ModelWorld", "model_world"]


@dataclass
class ModelWorld:
    database: Database
    owner: Caller
    project_id: ProjectId
    identity: IdentityService
    catalog: ModelCatalog
    ledger: DatabaseLedger
    gateway: ModelGateway
    probe: UpstreamProbe

    def context(self, **values: Any) -> ModelContext:
        return model_context(owner=self.owner.principal, project_id=self.project_id, **values)

    async def caller(self, kind: PrincipalKind, name: str, *actions: Action) -> Caller:
        request = TokenRequest(principal_kind=kind, principal_name=name, name=name, actions=frozenset(actions))
        _, secret = await self.identity.create_token(self.owner, request)
        return await self.identity.authenticate(secret)

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        async with self.database.connection() as connection:
            return await connection.fetch(sql, *values)

    async def only_usage(self) -> Any:
        """The one row of what was used. It is written when the client has its answer already."""
        for _ in range(6000):
            if rows := await self.rows("SELECT * FROM usage_logs"):
                [row] = rows
                return row
            await asyncio.sleep(0.01)
        raise AssertionError("nothing was settled")

    @asynccontextmanager
    async def client(self, context: ModelContext) -> AsyncIterator[httpx.AsyncClient]:
        """As a program in the run's sandbox is."""
        async with (
            listening(self.gateway, {"current": lambda: context}) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as client,
        ):
            yield client


@asynccontextmanager
async def model_world(
    database: Database,
    configured: Mapping[ModelProtocol, UpstreamAddress] | None = None,
    *,
    run_budget: int | None = None,
    secret: bytes = b"s" * 32,
) -> AsyncIterator[ModelWorld]:
    clock, audit, repository = SystemClock(), AuditRepository(AuditKey(b"k" * 32)), ModelRepository()
    identity = IdentityService(database=database, repository=IdentityRepository(), audit=audit, clock=clock)
    secret_of_owner = await identity.ensure_owner(None)
    assert secret_of_owner
    owner = await identity.authenticate(secret_of_owner)
    project = await ProjectService(database=database, audit=audit, clock=clock).create(owner, f"p-{uuid4().hex[:8]}")
    sealer = KeySealer(secret)
    ledger = DatabaseLedger(database=database, repository=repository, clock=clock, run_budget=run_budget)
    async with upstream_client(idle_seconds=60) as client:
        upstreams = StoredUpstreams(
            database=database,
            repository=repository,
            sealer=sealer,
            client=client,
            configured=configured or {},
            scripted=ScriptedModel(),
        )
        catalog = ModelCatalog(
            database=database,
            repository=repository,
            identity=IdentityRepository(),
            sealer=sealer,
            audit=audit,
            models_changed=upstreams.forget,
            clock=clock,
        )
        gateway = ModelGateway(upstreams=upstreams, ledger=ledger)
        probe = UpstreamProbe(catalog=catalog, sealer=sealer, client=client, configured=configured or {})
        yield ModelWorld(
            database=database,
            owner=owner,
            project_id=project.id,
            identity=identity,
            catalog=catalog,
            ledger=ledger,
            gateway=gateway,
            probe=probe,
        )
        await gateway.close()
