"""What an app gives to agents at work: configuration in layers, secrets, knowledge bases, runtime manifests."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.knowledge import folder_of
from contextbase.catalog.model import AppLayer, KnowledgeBase, PublishedManifest, StoredConfig
from contextbase.interfaces.api.authentication import AuthenticatedCaller
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.routes.apps import Apps, NamedApp
from contextbase.wire.agent_config import (
    AgentConfig,
    AgentConfigHistory,
    AgentConfigVersion,
    ConfigLayer,
    EffectiveConfigView,
)
from contextbase.wire.app import (
    KnowledgeBaseList,
    KnowledgeBasePut,
    KnowledgeBaseView,
    ManifestComparison,
    ManifestFieldDifference,
    ManifestList,
    ManifestView,
    RestorePlanView,
    SealedSecretList,
    SealedSecretPut,
    SealedSecretView,
)
from contextbase.wire.manifest import RUNTIME_VERSION, ManifestSpelling, RuntimeManifest

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/apps/{app}", tags=["apps"], responses=problem_answers(404, 409))

AppProject = Annotated[
    str | None,
    Query(description="A project of the app; null: default.", max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"),
]
Named = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Version = Annotated[str, Path(description="Such as 2026.02.11, or latest.", pattern=RUNTIME_VERSION)]
Spelling = Annotated[ManifestSpelling, Query(description="runtimeVersion, or runtime_version.")]

LATEST = "latest"


async def app_layer(app: NamedApp, layer: ConfigLayer, app_project: AppProject = None) -> AppLayer:
    return AppLayer(app, layer, app_project)


NamedLayer = Annotated[AppLayer, Depends(app_layer)]


@router.get("/effective-config")
async def show_effective_config(
    app: NamedApp, caller: AuthenticatedCaller, catalog: Apps, app_project: AppProject = None
) -> EffectiveConfigView:
    """What holds for you at work in the app, and which layer each value is from."""
    place, found = await catalog.configuration.effective(caller, app, app_project)
    config = found.effective.config
    return EffectiveConfigView(
        app=app,
        app_project=place.project,
        user=caller.principal.name,
        config=config,
        provenance=dict(found.effective.provenance),
        versions=dict(found.versions),
        sealed=await catalog.configuration.stored_secrets(caller, app, app_project, config),
    )


@router.get("/configs/{layer}")
async def show_config(
    *,
    layer: NamedLayer,
    caller: AuthenticatedCaller,
    catalog: Apps,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1,
) -> AgentConfigHistory:
    """A layer of configuration, with as many of its versions as asked for. `user` is your own."""
    found = await catalog.configuration.history(caller, layer, limit=limit)
    return AgentConfigHistory(versions=[_config_view(stored) for stored in found])


@router.put("/configs/{layer}")
async def put_config(
    *,
    layer: NamedLayer,
    body: AgentConfig,
    caller: AuthenticatedCaller,
    catalog: Apps,
    expected_version: Annotated[int | None, Query(ge=0, description="409 if the last version is another.")] = None,
) -> AgentConfigVersion:
    """A new version of a layer, in the place of the last. Needs manage_agentconfig there."""
    stored = await catalog.configuration.put(caller, layer, body, expected=expected_version)
    return _config_view(stored)


@router.get("/secrets/{layer}")
async def list_secrets(layer: NamedLayer, caller: AuthenticatedCaller, catalog: Apps) -> SealedSecretList:
    """The names of a layer's secrets. Their values are never shown."""
    found = await catalog.configuration.secrets(caller, layer)
    return SealedSecretList(secrets=[SealedSecretView(name=name, key=key, changed_at=at) for name, key, at in found])


@router.put("/secrets/{layer}/{name}")
async def put_secret(
    layer: NamedLayer, name: Named, body: SealedSecretPut, caller: AuthenticatedCaller, catalog: Apps
) -> SealedSecretView:
    """Store a secret sealed, for configurations to name. Needs manage_agentconfig there."""
    key, at = await catalog.configuration.put_secret(caller, layer, name, body.value)
    return SealedSecretView(name=name, key=key, changed_at=at)


@router.delete("/secrets/{layer}/{name}", status_code=204)
async def delete_secret(layer: NamedLayer, name: Named, caller: AuthenticatedCaller, catalog: Apps) -> Response:
    await catalog.configuration.delete_secret(caller, layer, name)
    return Response(status_code=204)


@router.get("/knowledge-bases")
async def list_knowledge_bases(
    app: NamedApp,
    caller: AuthenticatedCaller,
    catalog: Apps,
    app_project: AppProject = None,
    tag: Annotated[list[str] | None, Query(description="Only those with any of these tags.", max_length=50)] = None,
) -> KnowledgeBaseList:
    """What you may look up in the app: the union of the app's, the project's and your own."""
    place, found = await catalog.knowledge.effective(caller, app, app_project, tag)
    return KnowledgeBaseList(knowledge_bases=[_knowledge_view(place, base) for base in found])


@router.put("/knowledge-bases/{layer}/{name}")
async def put_knowledge_base(
    layer: NamedLayer, name: Named, body: KnowledgeBasePut, caller: AuthenticatedCaller, catalog: Apps
) -> KnowledgeBaseView:
    """Make a knowledge base, or change its description and tags. Needs manage_kb there."""
    place, made = await catalog.knowledge.put(caller, layer, name, description=body.description, tags=body.tags)
    return _knowledge_view(place, made)


@router.delete("/knowledge-bases/{layer}/{name}", status_code=204)
async def delete_knowledge_base(layer: NamedLayer, name: Named, caller: AuthenticatedCaller, catalog: Apps) -> Response:
    """Take it from the list; its files stay."""
    await catalog.knowledge.delete(caller, layer, name)
    return Response(status_code=204)


@router.get("/manifests")
async def list_manifests(
    app: NamedApp, caller: AuthenticatedCaller, catalog: Apps, spelling: Spelling = ManifestSpelling.CAMEL
) -> ManifestList:
    """The app's runtime manifests, the latest first."""
    found = await catalog.manifests.list(caller, app)
    return ManifestList(manifests=[_manifest_view(published, spelling) for published in found])


@router.post("/manifests", status_code=201)
async def publish_manifest(
    app: NamedApp,
    body: RuntimeManifest,
    caller: AuthenticatedCaller,
    catalog: Apps,
    spelling: Spelling = ManifestSpelling.CAMEL,
) -> ManifestView:
    """Publish how sessions are composed, from the app's tree as it is now. A version never changes. Needs
    manage_agentconfig of the app."""
    return _manifest_view(await catalog.manifests.publish(caller, app, body), spelling)


@router.get("/manifests/{version}")
async def show_manifest(
    app: NamedApp,
    version: Version,
    caller: AuthenticatedCaller,
    catalog: Apps,
    spelling: Spelling = ManifestSpelling.CAMEL,
) -> ManifestView:
    return _manifest_view(await catalog.manifests.get(caller, app, _asked(version)), spelling)


@router.get("/manifests/{version}/compare/{other}")
async def compare_manifests(
    app: NamedApp, version: Version, other: Version, caller: AuthenticatedCaller, catalog: Apps
) -> ManifestComparison:
    """How the second differs from the first."""
    found = await catalog.manifests.compare(caller, app, _asked(version), _asked(other))
    shown = [ManifestFieldDifference(field=each.field, old=each.old, new=each.new) for each in found]
    return ManifestComparison(old=version, new=other, differences=shown)


@router.get("/manifests/{version}/plan")
async def show_restore_plan(
    *,
    app: NamedApp,
    version: Version,
    caller: AuthenticatedCaller,
    catalog: Apps,
    session: Annotated[str, Query(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")],
    app_project: AppProject = None,
) -> RestorePlanView:
    """How a session of yours would be composed."""
    plan = await catalog.manifests.plan(caller, app, _asked(version), project=app_project, session=session)
    return RestorePlanView(plan=plan.to_json())


def _asked(version: str) -> str | None:
    return None if version == LATEST else version


def _config_view(stored: StoredConfig) -> AgentConfigVersion:
    scope = stored.scope
    return AgentConfigVersion(
        layer=scope.layer,
        app_project=scope.project or None,
        user=None if scope.user is None else scope.user.name,
        version=stored.version,
        config=stored.config,
        changed_by=stored.changed_by,
        changed_at=stored.changed_at,
    )


def _knowledge_view(place: AppPlace, base: KnowledgeBase) -> KnowledgeBaseView:
    return KnowledgeBaseView(
        layer=base.layer,
        app_project=base.project or None,
        name=base.name,
        description=base.description,
        tags=list(base.tags),
        prefix=place.prefix(folder_of(place, base)),
    )


def _manifest_view(published: PublishedManifest, spelling: ManifestSpelling) -> ManifestView:
    return ManifestView(
        app=published.manifest.app_id,
        runtime_version=published.manifest.runtime_version,
        number=published.number,
        tree_seq=published.tree_seq,
        manifest=published.manifest.to_json(spelling),
        created_by=published.created_by,
        created_at=published.created_at,
    )
