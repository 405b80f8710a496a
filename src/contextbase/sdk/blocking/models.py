# Generated from aio/models.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Model services, allowed models and budgets, as a part of the clients: `client.models`."""

from datetime import date
from typing import Final
from urllib.parse import quote

from contextbase.agent_vocabulary import UsageGroup
from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.vocabulary import BudgetScope, ModelProtocol, ModelRole, UpstreamScope
from contextbase.wire.model import (
    ModelAllow,
    ModelBudgetList,
    ModelBudgetSet,
    ModelList,
    ModelPrices,
    ModelRemoved,
    ModelView,
    UpstreamCreate,
    UpstreamList,
    UpstreamTested,
    UpstreamView,
    UsageTable,
)

__all__ = ["Models"]

_MODELS: Final = "/api/v1/models"
_UPSTREAMS: Final = "/api/v1/model-upstreams"
_BUDGETS: Final = "/api/v1/model-budgets"
_USAGE: Final = "/api/v1/usage"


class Models:
    """What agents think with. Changes need a token that allows 'admin' for the whole server, where nothing else is
    said."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    def list(self) -> ModelList:
        """The models that agents may ask for; without any, those with a built-in price."""
        return self._connection.read(ModelList, _MODELS)

    @checked
    def allow(
        self,
        name: str,
        *,
        protocol: ModelProtocol,
        role: ModelRole = ModelRole.MAIN,
        prices: ModelPrices | None = None,
    ) -> ModelView:
        """Add a model to the list, or change its role and prices (micro-units for a million tokens)."""
        body = ModelAllow(name=name, protocol=protocol, role=role, prices=prices)
        return self._connection.call(ModelView, "POST", _MODELS, body)

    @checked
    def forbid(self, name: str) -> ModelRemoved:
        """Take a model from the list. Raises `NotFound` if it is not there."""
        return self._connection.call(ModelRemoved, "DELETE", _MODELS, name=name)

    @checked
    def upstreams(self) -> UpstreamList:
        """The model services that you may manage, without their keys."""
        return self._connection.read(UpstreamList, _UPSTREAMS)

    @checked
    def connect(
        self,
        name: str,
        *,
        protocol: ModelProtocol,
        url: str,
        key: str = "",
        scope: UpstreamScope = UpstreamScope.PLATFORM,
        project: str | None = None,
    ) -> UpstreamView:
        """Add a model service: for everybody, for a project (needs its 'admin'), or for yourself (scope 'user'). Its
        key is stored sealed. Raises `Conflict` if the name, or the scope's place for that protocol, is taken."""
        body = UpstreamCreate(name=name, protocol=protocol, url=url, key=key, scope=scope, project=project)
        return self._connection.call(UpstreamView, "POST", _UPSTREAMS, body)

    @checked
    def disconnect(self, name: str) -> ModelRemoved:
        """Remove a model service and its key. Raises `NotFound` if there is none that you may manage."""
        return self._connection.call(ModelRemoved, "DELETE", f"{_UPSTREAMS}/{quote(name, safe='')}")

    @checked
    def test(self, name: str) -> UpstreamTested:
        """Ask a model service for its list of models, which costs nothing."""
        return self._connection.call(UpstreamTested, "POST", f"{_UPSTREAMS}/{quote(name, safe='')}/test")

    @checked
    def budgets(self) -> ModelBudgetList:
        """Budgets, and what is gone of them this month; in micro-units."""
        return self._connection.read(ModelBudgetList, _BUDGETS)

    @checked
    def set_budget(self, scope: BudgetScope, subject: str, monthly_limit: int | None) -> ModelBudgetList:
        """Limit what a user or a project may spend in a month, in micro-units; None: no limit. Raises `NotFound` if
        there is no such user or project."""
        body = ModelBudgetSet(scope=scope, subject=subject, monthly_limit=monthly_limit)
        return self._connection.call(ModelBudgetList, "PUT", _BUDGETS, body)

    @checked
    def usage(
        self,
        by: UsageGroup = UsageGroup.PERSON,
        *,
        since: date | None = None,
        until: date | None = None,
        limit: int = 100,
    ) -> UsageTable:
        """Tokens, and cost in micro-units, of what agents asked models on those days (UTC), both counted. None: since
        the first of this month, until today."""
        return self._connection.read(UsageTable, _USAGE, by=by, since=since, until=until, limit=limit)
