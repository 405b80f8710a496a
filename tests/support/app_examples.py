"""The manifest and the restore plan that the product's documents show, and the routes that are about one app."""

from typing import Any

MANIFEST: dict[str, Any] = {
    "appId": "code-assistant",
    "runtimeVersion": "2026.02.11",
    "workspaceTemplatePrefix": "app/code-assistant/registry/runtime/2026.02.11/template/",
    "requiredPaths": [
        "/workspace/.agent_data",
        "/workspace/.kb/app",
        "/workspace/.kb/project",
        "/workspace/.user-files",
    ],
    "seedFiles": [
        {
            "from": "app/code-assistant/registry/runtime/2026.02.11/seeds/README.md",
            "to": "/workspace/README.md",
            "ifMissingOnly": True,
        },
        {
            "from": "app/code-assistant/registry/runtime/2026.02.11/seeds/.editorconfig",
            "to": "/workspace/.editorconfig",
            "ifMissingOnly": True,
        },
    ],
    "mountPoints": [
        {"name": "app_kb", "targetPath": "/workspace/.kb/app", "readOnly": True},
        {"name": "project_kb", "targetPath": "/workspace/.kb/project", "readOnly": True},
        {"name": "user_files", "targetPath": "/workspace/.user-files", "readOnly": False},
        {"name": "agent_data", "targetPath": "/workspace/.agent_data", "readOnly": False},
    ],
    "conflictPolicy": "keep_session",
    "protectedPaths": [
        "/workspace/.agent_data",
        "/workspace/.codex",
        "/workspace/.claude",
        "/workspace/.opencode",
    ],
    "cleanupRules": [
        {"action": "remove_if_exists", "path": "/workspace/.tmp"},
        {"action": "truncate_if_exists", "path": "/workspace/.runtime/logs/bootstrap.log"},
    ],
}

SNAKE_MANIFEST: dict[str, Any] = {
    "app_id": MANIFEST["appId"],
    "runtime_version": MANIFEST["runtimeVersion"],
    "workspace_template_prefix": MANIFEST["workspaceTemplatePrefix"],
    "required_paths": MANIFEST["requiredPaths"],
    "seed_files": [{"from": seed["from"], "to": seed["to"], "if_missing_only": True} for seed in MANIFEST["seedFiles"]],
    "mount_points": [
        {"name": point["name"], "target_path": point["targetPath"], "read_only": point["readOnly"]}
        for point in MANIFEST["mountPoints"]
    ],
    "conflict_policy": "keep_session",
    "protected_paths": MANIFEST["protectedPaths"],
    "cleanup_rules": MANIFEST["cleanupRules"],
}

PLAN: dict[str, Any] = {
    "appId": "code-assistant",
    "runtimeVersion": "2026.02.11",
    "workspaceS3Prefix": "app/code-assistant/project/default/alice/session/sess_01/workspace",
    "conflictPolicy": "keep_session",
    "protectedPaths": MANIFEST["protectedPaths"],
    "entries": [
        {
            "layer": "registry_base",
            "fromPrefix": "app/code-assistant/registry/runtime/2026.02.11/template/",
            "toPath": "/workspace",
            "optional": False,
        },
        {
            "layer": "session_overlay",
            "fromPrefix": "app/code-assistant/project/default/alice/session/sess_01/workspace/",
            "toPath": "/workspace",
            "optional": True,
        },
        {
            "layer": "knowledge_overlay",
            "fromPrefix": "app/code-assistant/kb/",
            "toPath": "/workspace/.kb/app",
            "optional": True,
        },
        {
            "layer": "knowledge_overlay",
            "fromPrefix": "app/code-assistant/project/default/kb/",
            "toPath": "/workspace/.kb/project",
            "optional": True,
        },
        {
            "layer": "user_overlay",
            "fromPrefix": "app/code-assistant/project/default/alice/files/",
            "toPath": "/workspace/.user-files",
            "optional": True,
        },
    ],
}

_APP = "/api/v1/apps/{app}"
APP_ROUTES: dict[tuple[str, str], dict[str, Any] | None] = {
    ("GET", _APP): None,
    ("PATCH", _APP): {"title": "Another"},
    ("PUT", f"{_APP}/visibility"): {},
    ("GET", f"{_APP}/projects"): None,
    ("PUT", f"{_APP}/projects"): {"name": "beta"},
    ("GET", f"{_APP}/effective-config"): None,
    ("GET", f"{_APP}/configs/{{layer}}"): None,
    ("PUT", f"{_APP}/configs/{{layer}}"): {"model": "a"},
    ("GET", f"{_APP}/secrets/{{layer}}"): None,
    ("PUT", f"{_APP}/secrets/{{layer}}/{{name}}"): {"value": "x"},
    ("DELETE", f"{_APP}/secrets/{{layer}}/{{name}}"): None,
    ("GET", f"{_APP}/files"): None,
    ("GET", f"{_APP}/files/{{path:path}}"): None,
    ("PUT", f"{_APP}/files/{{path:path}}"): {},
    ("DELETE", f"{_APP}/files/{{path:path}}"): None,
    ("GET", f"{_APP}/knowledge-bases"): None,
    ("PUT", f"{_APP}/knowledge-bases/{{layer}}/{{name}}"): {},
    ("DELETE", f"{_APP}/knowledge-bases/{{layer}}/{{name}}"): None,
    ("GET", f"{_APP}/manifests"): None,
    ("POST", f"{_APP}/manifests"): MANIFEST,
    ("GET", f"{_APP}/manifests/{{version}}"): None,
    ("GET", f"{_APP}/manifests/{{version}}/compare/{{other}}"): None,
    ("GET", f"{_APP}/manifests/{{version}}/plan"): None,
}
"""With a body that the route takes."""


def manifest_of(app: str, **changes: Any) -> dict[str, Any]:
    """The documented manifest, as one of this app."""

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("code-assistant", app)
        if isinstance(value, dict):
            return {key: renamed(each) for key, each in value.items()}
        return [renamed(each) for each in value] if isinstance(value, list) else value

    found: dict[str, Any] = renamed(MANIFEST) | changes
    return found


def app_request(key: tuple[str, str], app: str) -> dict[str, Any]:
    """A request about an app that its route understands."""
    method, path = key
    parts = {"{layer}": "app", "{name}": "x", "{version}": "1", "{other}": "2", "{path:path}": "kb/a.md", "{app}": app}
    for part, value in parts.items():
        path = path.replace(part, value)
    body = manifest_of(app) if path.endswith("/manifests") and method == "POST" else APP_ROUTES[key]
    request: dict[str, Any] = {"method": method, "url": path}
    if body is not None:
        request["json"] = body
    if path.endswith(("/plan", "/files")):
        request["params"] = {"session": "s"} if path.endswith("/plan") else {"prefix": "kb"}
    return request
