# Generated from aio/app_settings.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""What an app gives to agents at work, as a part of the clients: `client.app_settings`."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
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
    ManifestList,
    ManifestView,
    RestorePlanView,
    SealedSecretList,
    SealedSecretPut,
    SealedSecretView,
)
from contextbase.wire.manifest import ManifestSpelling, RuntimeManifest

__all__ = ["AppSettings"]


class AppSettings:
    """Layers are `app`, `project` and `user` (your own). `app_project` is a project of the app; None: `default`. Every
    method raises `NotFound` if you may not see the app."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    def effective(self, app: str, *, app_project: str | None = None) -> EffectiveConfigView:
        """What holds for you at work in the app, and which layer each value is from."""
        return self._connection.read(EffectiveConfigView, _path(app, "effective-config"), app_project=app_project)

    @checked
    def config(
        self, app: str, layer: ConfigLayer, *, app_project: str | None = None, limit: int = 1
    ) -> AgentConfigHistory:
        """A layer's newest versions."""
        return self._connection.read(
            AgentConfigHistory, _path(app, "configs", layer), app_project=app_project, limit=limit
        )

    @checked
    def set_config(
        self,
        app: str,
        layer: ConfigLayer,
        config: Mapping[str, Any],
        *,
        app_project: str | None = None,
        expected_version: int | None = None,
    ) -> AgentConfigVersion:
        """A new version of a layer. Raises `Conflict` if its last one is not the expected."""
        body = AgentConfig.model_validate(dict(config))
        return self._connection.call(
            AgentConfigVersion,
            "PUT",
            _path(app, "configs", layer),
            body,
            app_project=app_project,
            expected_version=expected_version,
        )

    @checked
    def secrets(self, app: str, layer: ConfigLayer, *, app_project: str | None = None) -> SealedSecretList:
        """The names of a layer's secrets; their values are never shown."""
        return self._connection.read(SealedSecretList, _path(app, "secrets", layer), app_project=app_project)

    @checked
    def set_secret(
        self, app: str, layer: ConfigLayer, name: str, value: str, *, app_project: str | None = None
    ) -> SealedSecretView:
        """Store a secret sealed, for configurations to name."""
        body = SealedSecretPut(value=value)
        return self._connection.call(
            SealedSecretView, "PUT", _path(app, "secrets", layer, name), body, app_project=app_project
        )

    @checked
    def delete_secret(self, app: str, layer: ConfigLayer, name: str, *, app_project: str | None = None) -> None:
        """Raises `NotFound` if the layer has no such secret."""
        self._connection.done("DELETE", _path(app, "secrets", layer, name), app_project=app_project)

    @checked
    def knowledge_bases(
        self, app: str, *, app_project: str | None = None, tags: Sequence[str] = ()
    ) -> KnowledgeBaseList:
        """The union of the app's, the project's and your own; with any of the tags, if some are given."""
        return self._connection.read(
            KnowledgeBaseList, _path(app, "knowledge-bases"), app_project=app_project, tag=list(tags) or None
        )

    @checked
    def set_knowledge_base(
        self,
        app: str,
        layer: ConfigLayer,
        name: str,
        *,
        description: str = "",
        tags: Sequence[str] = (),
        app_project: str | None = None,
    ) -> KnowledgeBaseView:
        """Make it, or change its description and tags. Its files are below the `prefix` of the answer."""
        body = KnowledgeBasePut(description=description, tags=list(tags))
        return self._connection.call(
            KnowledgeBaseView, "PUT", _path(app, "knowledge-bases", layer, name), body, app_project=app_project
        )

    @checked
    def delete_knowledge_base(self, app: str, layer: ConfigLayer, name: str, *, app_project: str | None = None) -> None:
        """Take it from the list; its files stay."""
        self._connection.done("DELETE", _path(app, "knowledge-bases", layer, name), app_project=app_project)

    @checked
    def manifests(self, app: str, *, spelling: ManifestSpelling = ManifestSpelling.CAMEL) -> ManifestList:
        """The latest first."""
        return self._connection.read(ManifestList, _path(app, "manifests"), spelling=spelling)

    @checked
    def publish(
        self, app: str, manifest: Mapping[str, Any], *, spelling: ManifestSpelling = ManifestSpelling.CAMEL
    ) -> ManifestView:
        """Publish how sessions are composed, in either spelling. Raises `Conflict` if there is another manifest of that
        version."""
        body = RuntimeManifest.model_validate(dict(manifest))
        return self._connection.call(ManifestView, "POST", _path(app, "manifests"), body, spelling=spelling)

    @checked
    def manifest(
        self, app: str, version: str = "latest", *, spelling: ManifestSpelling = ManifestSpelling.CAMEL
    ) -> ManifestView:
        """One of the app's manifests, by its version."""
        return self._connection.read(ManifestView, _path(app, "manifests", version), spelling=spelling)

    @checked
    def compare(self, app: str, old: str, new: str = "latest") -> ManifestComparison:
        """How the second manifest differs from the first."""
        return self._connection.read(ManifestComparison, _path(app, "manifests", old, "compare", new))

    @checked
    def plan(
        self, app: str, session: str, *, version: str = "latest", app_project: str | None = None
    ) -> RestorePlanView:
        """How a session of yours would be composed."""
        return self._connection.read(
            RestorePlanView, _path(app, "manifests", version, "plan"), session=session, app_project=app_project
        )


def _path(app: str, *parts: str) -> str:
    return "/".join(["/api/v1/apps", *(quote(part, safe="") for part in (app, *parts))])
