"""Apps: the store, and who registers, describes and shows them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from contextbase.bootstrap.catalog import CatalogServices
from contextbase.catalog.model import App, AppChange, NewApp, StoreEntry, VisibilityRule
from contextbase.catalog.rights import manages
from contextbase.interfaces.api.answers import as_json
from contextbase.interfaces.api.authentication import AuthenticatedCaller, services_of
from contextbase.interfaces.api.document import problem_answers
from contextbase.wire.app import (
    APP_NAME,
    AppChangeBody,
    AppCreate,
    AppProjects,
    AppProjectView,
    AppView,
    StoreEntryView,
    StoreView,
    VisibilityBody,
    VisibilityKind,
)

__all__ = ["Apps", "NamedApp", "router"]

router = APIRouter(prefix="/api/v1/apps", tags=["apps"], responses=problem_answers(404, 409))


async def _catalog(request: Request) -> CatalogServices:
    return services_of(request).apps


Apps = Annotated[CatalogServices, Depends(_catalog)]
NamedApp = Annotated[str, Path(description="The app's name.", pattern=APP_NAME)]


@router.get("/store", response_model=StoreView)
async def show_store(caller: AuthenticatedCaller, catalog: Apps) -> Response:
    """The apps that you may see, whether you may use each, and why."""
    return as_json(StoreView(apps=[_entry_view(entry) for entry in await catalog.apps.store(caller)]))


@router.post("", status_code=201)
async def register_app(body: AppCreate, caller: AuthenticatedCaller, catalog: Apps) -> AppView:
    """Make an app with a tree of its own. Needs 'admin' of the whole server."""
    new = NewApp(name=body.name, title=body.title or body.name, description=body.description, icon=body.icon)
    return _app_view(await catalog.apps.register(caller, new), VisibilityBody())


@router.get("/{app}")
async def show_app(app: NamedApp, caller: AuthenticatedCaller, catalog: Apps) -> AppView:
    entry = await catalog.apps.get(caller, app)
    if not manages(caller, entry.app):
        return _app_view(entry.app)
    return _app_view(entry.app, await _visibility(catalog, caller, entry.app))


@router.patch("/{app}")
async def change_app(app: NamedApp, body: AppChangeBody, caller: AuthenticatedCaller, catalog: Apps) -> AppView:
    """Describe it anew, enable or disable it, give it another owner. Needs manage_agentconfig of the app."""
    changed = await catalog.apps.change(caller, app, AppChange(**body.model_dump()))
    return _app_view(changed, await _visibility(catalog, caller, changed))


@router.put("/{app}/visibility")
async def replace_visibility(
    app: NamedApp, body: VisibilityBody, caller: AuthenticatedCaller, catalog: Apps
) -> AppView:
    """To whom the app is shown, and to nobody else. Needs manage_agentconfig of the app."""
    rules = [VisibilityRule(kind=VisibilityKind.DEPARTMENT, subject=subject) for subject in body.departments]
    rules += [VisibilityRule(kind=VisibilityKind.ROLE, subject=subject) for subject in body.roles]
    changed = await catalog.apps.put_visibility(caller, app, rules, body.members)
    return _app_view(changed, await _visibility(catalog, caller, changed))


@router.get("/{app}/projects")
async def list_app_projects(app: NamedApp, caller: AuthenticatedCaller, catalog: Apps) -> AppProjects:
    """The projects of the app, beside `default`."""
    found = await catalog.apps.project_list(caller, app)
    return AppProjects(projects=[AppProjectView(name=name, description=text) for name, text in found])


@router.put("/{app}/projects")
async def put_app_project(
    app: NamedApp, body: AppProjectView, caller: AuthenticatedCaller, catalog: Apps
) -> AppProjectView:
    """Give the app a project, with configuration and knowledge of its own. Needs manage_agentconfig of the app."""
    await catalog.apps.put_project(caller, app, body.name, body.description)
    return body


async def _visibility(catalog: CatalogServices, caller: AuthenticatedCaller, app: App) -> VisibilityBody:
    return VisibilityBody(
        departments=sorted(rule.subject for rule in app.rules if rule.kind is VisibilityKind.DEPARTMENT),
        roles=sorted(rule.subject for rule in app.rules if rule.kind is VisibilityKind.ROLE),
        members=[str(member) for member in await catalog.apps.members(caller, app.name)],
    )


def _app_view(app: App, visibility: VisibilityBody | None = None) -> AppView:
    return AppView(
        id=app.id,
        name=app.name,
        title=app.title,
        description=app.description,
        icon=app.icon,
        enabled=app.enabled,
        owner=app.owner,
        project_id=app.project_id,
        created_at=app.created_at,
        updated_at=app.updated_at,
        visibility=visibility,
    )


def _entry_view(entry: StoreEntry) -> StoreEntryView:
    return StoreEntryView(
        name=entry.app.name,
        title=entry.app.title,
        description=entry.app.description,
        icon=entry.app.icon,
        can_view=True,
        can_use=entry.can_use,
        view_reason=entry.why_seen,
        use_reason=entry.why_used,
    )
