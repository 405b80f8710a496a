"""What is put into the folder of an app's session before a run, and in which order. Pure."""

from dataclasses import dataclass

from contextbase.catalog.app_keys import AppPlace, check_app_project
from contextbase.catalog.manifest import WORKSPACE
from contextbase.errors import InvalidInput
from contextbase.ids import TreePath
from contextbase.wire.manifest import MountName, RestoreLayer, RestorePlan, RestorePlanEntry, RuntimeManifest

__all__ = ["RunContext", "build_restore_plan"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """For whom a session is composed, and of which version."""

    app_id: str
    project_name: str = ""  # "default" when empty
    user_login_name: str
    session_id: str
    runtime_version: str

    @property
    def place(self) -> AppPlace:
        return AppPlace(app=self.app_id, project=check_app_project(self.project_name), login=self.user_login_name)


def build_restore_plan(manifest: RuntimeManifest, context: RunContext) -> RestorePlan:
    """The template (L0), the session's own files (L1), knowledge (L2) and the user's files (L3). A layer without a
    mount point in the manifest is left out. Only the template must be there."""
    if (manifest.app_id, manifest.runtime_version) != (context.app_id, context.runtime_version):
        raise InvalidInput(
            f"This is the manifest {manifest.runtime_version} of the app '{manifest.app_id}', and the run is of "
            f"{context.runtime_version} of '{context.app_id}'."
        )
    place = context.place
    workspace = place.workspace(context.session_id)
    entries = [
        RestorePlanEntry(
            layer=RestoreLayer.REGISTRY_BASE,
            from_prefix=manifest.workspace_template_prefix,
            to_path=WORKSPACE,
            optional=False,
        ),
        RestorePlanEntry(
            layer=RestoreLayer.SESSION_OVERLAY, from_prefix=place.prefix(workspace), to_path=WORKSPACE, optional=True
        ),
    ]
    overlays: list[tuple[MountName, RestoreLayer, TreePath]] = [
        (MountName.APP_KB, RestoreLayer.KNOWLEDGE_OVERLAY, place.app_kb),
        (MountName.PROJECT_KB, RestoreLayer.KNOWLEDGE_OVERLAY, place.project_kb),
        (MountName.USER_FILES, RestoreLayer.USER_OVERLAY, place.user_files),
    ]
    for name, layer, path in overlays:
        if (point := manifest.mount(name)) is not None:
            entries.append(
                RestorePlanEntry(
                    layer=layer, from_prefix=place.prefix(path), to_path=point.target_path.rstrip("/"), optional=True
                )
            )
    return RestorePlan(
        app_id=manifest.app_id,
        runtime_version=manifest.runtime_version,
        workspace_s3_prefix=place.key(workspace),
        conflict_policy=manifest.conflict_policy,
        protected_paths=manifest.protected_paths,
        entries=tuple(entries),
    )
