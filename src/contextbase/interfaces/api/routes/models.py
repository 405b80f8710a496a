"""Model services, allowed models and budgets."""

import re
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BeforeValidator

from contextbase.agent_vocabulary import UsageGroup
from contextbase.bootstrap import ModelServices
from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.models.catalog import NewUpstream
from contextbase.models.model import AllowedModel, ModelUpstream, UsageSum
from contextbase.vocabulary import BudgetScope, UpstreamScope
from contextbase.wire.model import (
    EgressHosts,
    ModelAllow,
    ModelBudgetList,
    ModelBudgetSet,
    ModelBudgetView,
    ModelList,
    ModelPrices,
    ModelRemoved,
    ModelView,
    UpstreamCreate,
    UpstreamList,
    UpstreamTested,
    UpstreamView,
    UsageRowView,
    UsageTable,
)
from contextbase.wire.project import NAME_OR_ID

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["models"], responses=problem_answers(404, 409))


async def _models(request: Request) -> ModelServices:
    services: ModelServices = request.app.state.services.models
    return services


def _written_day(text: object) -> object:
    """Pydantic also takes seconds since 1970."""
    if isinstance(text, str) and not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError("Write the day as 2026-01-31.")
    return text


Models = Annotated[ModelServices, Depends(_models)]
Day = Annotated[date, BeforeValidator(_written_day)]
UpstreamName = Annotated[str, Path(max_length=100, pattern="^[a-z0-9][a-z0-9._-]*$")]
ProjectInPath = Annotated[str, Path(description="The project's name or id.", max_length=100, pattern=NAME_OR_ID)]


@router.get("/models")
async def list_models(caller: AuthenticatedCaller, models: Models) -> ModelList:
    """The models that agents may ask for."""
    return ModelList(models=[_model_view(model) for model in await models.catalog.models(caller)])


@router.post("/models")
async def allow_model(body: ModelAllow, caller: AuthenticatedCaller, models: Models) -> ModelView:
    """Add a model to the list, or change its role and prices. Needs 'admin' for the whole server."""
    prices = body.prices
    model = AllowedModel(
        name=body.name,
        protocol=body.protocol,
        role=body.role,
        prices=None if prices is None else (prices.input, prices.output, prices.cache_read, prices.cache_write),
    )
    await models.catalog.allow_model(caller, model)
    return _model_view(model)


@router.delete("/models")
async def forbid_model(
    caller: AuthenticatedCaller, models: Models, name: Annotated[str, Query(min_length=1, max_length=200)]
) -> ModelRemoved:
    """Take a model from the list. Needs 'admin' for the whole server."""
    await models.catalog.forbid_model(caller, name)
    return ModelRemoved(name=name)


@router.get("/model-upstreams")
async def list_upstreams(caller: AuthenticatedCaller, models: Models) -> UpstreamList:
    """The model services that you may manage, without their keys."""
    added = [_upstream_view(upstream) for upstream in await models.catalog.upstreams(caller)]
    configured = [
        UpstreamView(
            name=address.name,
            protocol=address.protocol,
            url=address.base_url,
            scope=UpstreamScope.PLATFORM,
            subject="",
            has_key=bool(address.key),
            source="settings",
        )
        for address in models.probe.configured(caller)
    ]
    return UpstreamList(upstreams=added + configured)


@router.post("/model-upstreams", status_code=201)
async def add_upstream(
    body: UpstreamCreate, caller: AuthenticatedCaller, services: AuthenticatedServices, models: Models
) -> UpstreamView:
    """Add a model service for everybody ('admin'), for a project (its 'admin'), or for yourself. Only administrators of
    the server may name one in a private network."""
    project_id = None
    if body.project is not None:
        project_id = await services.projects.id_of(caller, body.project, action=Action.ADMIN)
    new = NewUpstream(
        name=body.name,
        protocol=body.protocol,
        base_url=body.url,
        key=body.key,
        scope=body.scope,
        project_id=project_id,
    )
    return _upstream_view(await models.catalog.add_upstream(caller, new))


@router.delete("/model-upstreams/{upstream}")
async def remove_upstream(upstream: UpstreamName, caller: AuthenticatedCaller, models: Models) -> ModelRemoved:
    """Remove a model service, and its key with it."""
    await models.catalog.remove_upstream(caller, upstream)
    return ModelRemoved(name=upstream)


@router.post("/model-upstreams/{upstream}/test")
async def test_upstream(upstream: UpstreamName, caller: AuthenticatedCaller, models: Models) -> UpstreamTested:
    """Ask a model service for its list of models, which costs nothing."""
    result = await models.probe.test(caller, upstream)
    return UpstreamTested(name=upstream, is_well=result.is_well, http_status=result.status, message=result.message)


@router.get("/model-budgets")
async def list_budgets(caller: AuthenticatedCaller, models: Models) -> ModelBudgetList:
    """Budgets, and what is gone of them this month. Needs 'admin' for the whole server."""
    views = [
        ModelBudgetView.model_validate(each, from_attributes=True) for each in await models.catalog.budgets(caller)
    ]
    return ModelBudgetList(budgets=views)


@router.put("/model-budgets")
async def set_budget(
    body: ModelBudgetSet, caller: AuthenticatedCaller, services: AuthenticatedServices, models: Models
) -> ModelBudgetList:
    """Limit what a user or a project may spend on models in a month. Needs 'admin' for the whole server."""
    caller.require(Action.ADMIN)
    if body.scope is BudgetScope.USER:
        await models.catalog.set_user_budget(caller, body.subject, body.monthly_limit)
    else:
        project_id = await services.projects.id_of(caller, body.subject, action=Action.ADMIN)
        await models.catalog.set_project_budget(caller, project_id, body.monthly_limit)
    return await list_budgets(caller, models)


@router.get("/usage")
async def show_usage(
    *,
    caller: AuthenticatedCaller,
    models: Models,
    by: Annotated[UsageGroup, Query(description="What it is added up by.")] = UsageGroup.PERSON,
    since: Annotated[Day | None, Query(description="The first day (UTC); null: the first of this month.")] = None,
    until: Annotated[Day | None, Query(description="The last day (UTC); null: today.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> UsageTable:
    """Tokens and cost of what agents asked models. Needs 'admin' for the whole server."""
    found = await models.catalog.usage(caller, by, since=since, until=until, limit=limit)
    return UsageTable(by=by, rows=[_usage_view(each) for each in found])


@router.get("/projects/{project}/egress")
async def list_egress_hosts(
    project: ProjectInPath, caller: AuthenticatedCaller, services: AuthenticatedServices, models: Models
) -> EgressHosts:
    """The hosts that sandboxes of a project may reach."""
    project_id = await services.projects.id_of(caller, project)
    return EgressHosts(hosts=await models.egress.hosts(caller, project_id))


@router.put("/projects/{project}/egress")
async def replace_egress_hosts(
    project: ProjectInPath,
    body: EgressHosts,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    models: Models,
) -> EgressHosts:
    """Allow these hosts, and no other. Needs 'admin'."""
    project_id = await services.projects.id_of(caller, project, action=Action.ADMIN)
    return EgressHosts(hosts=await models.egress.replace(caller, project_id, body.hosts))


def _usage_view(used: UsageSum) -> UsageRowView:
    counts = used.counts
    return UsageRowView(
        subject=used.subject,
        requests=used.requests,
        input=counts.input,
        output=counts.output,
        cache_read=counts.cache_read,
        cache_write=counts.cache_write,
        cost=used.cost,
    )


def _model_view(model: AllowedModel) -> ModelView:
    prices = None
    if model.prices is not None:
        given, output, cache_read, cache_write = model.prices
        prices = ModelPrices(input=given, output=output, cache_read=cache_read, cache_write=cache_write)
    return ModelView(name=model.name, protocol=model.protocol, role=model.role, prices=prices)


def _upstream_view(upstream: ModelUpstream) -> UpstreamView:
    return UpstreamView(
        name=upstream.name,
        protocol=upstream.protocol,
        url=upstream.base_url,
        scope=upstream.scope,
        subject=upstream.subject,
        has_key=upstream.sealed_key is not None,
        source="added",
    )
