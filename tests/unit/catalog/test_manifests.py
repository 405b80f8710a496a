from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.app_examples import MANIFEST, PLAN, SNAKE_MANIFEST

from contextbase.catalog.manifest import check_manifest, differences
from contextbase.catalog.restore_plan import RunContext, build_restore_plan
from contextbase.errors import ContextbaseError, InvalidInput
from contextbase.wire.manifest import ManifestSpelling, MountName, RuntimeManifest

_CONTEXT = RunContext(
    app_id="code-assistant", user_login_name="alice", session_id="sess_01", runtime_version="2026.02.11"
)


def _manifest(**changes: Any) -> RuntimeManifest:
    return RuntimeManifest.model_validate(MANIFEST | changes)


def test_both_spellings_of_a_manifest_are_the_same_manifest() -> None:
    manifest = _manifest()
    assert RuntimeManifest.model_validate(SNAKE_MANIFEST) == manifest
    assert manifest.to_json() == MANIFEST
    assert manifest.to_json(ManifestSpelling.SNAKE) == SNAKE_MANIFEST
    assert check_manifest(manifest) is manifest


def test_the_plan_of_the_documented_manifest_is_the_documented_plan() -> None:
    assert build_restore_plan(_manifest(), _CONTEXT).to_json() == PLAN


def test_a_project_that_is_named_by_blanks_is_the_default_one() -> None:
    context = RunContext(
        app_id="code-assistant",
        project_name="  ",
        user_login_name="alice",
        session_id="sess_01",
        runtime_version="2026.02.11",
    )
    assert build_restore_plan(_manifest(), context).to_json() == PLAN


def test_a_layer_without_a_mount_point_is_not_in_the_plan() -> None:
    manifest = _manifest(mountPoints=[{"name": "app_kb", "targetPath": "/workspace/kb/", "readOnly": True}])
    entries = build_restore_plan(manifest, _CONTEXT).to_json()["entries"]
    assert [entry["toPath"] for entry in entries] == ["/workspace", "/workspace", "/workspace/kb"]


@pytest.mark.parametrize(
    ("app", "login", "version"),
    [
        ("other", "alice", "2026.02.11"),
        ("code-assistant", "alice", "1"),
        ("code-assistant", "../bob", "2026.02.11"),
        ("code-assistant", "kb", "2026.02.11"),
        ("code-assistant", "a/b", "2026.02.11"),
    ],
)
def test_a_plan_is_for_its_own_app_version_and_user_alone(app: str, login: str, version: str) -> None:
    context = RunContext(app_id=app, user_login_name=login, session_id="s", runtime_version=version)
    with pytest.raises(ContextbaseError):
        build_restore_plan(_manifest(), context)


@pytest.mark.parametrize(
    "wrong",
    [
        {"workspaceTemplatePrefix": "app/another/registry/template/"},
        {"workspaceTemplatePrefix": "app/code-assistant/kb/"},
        {"workspaceTemplatePrefix": "app/code-assistant/registry/../kb/"},
        {"workspaceTemplatePrefix": "app/code-assistant/project/default/alice/auth/"},
        {"requiredPaths": ["/etc/passwd"]},
        {"requiredPaths": ["/workspace/../etc"]},
        {"protectedPaths": ["/workspaces/x"]},
        {"cleanupRules": [{"action": "remove_if_exists", "path": "/workspace"}]},
        {"seedFiles": [{"from": "app/code-assistant/registry/x", "to": "/root/.bashrc"}]},
        {"seedFiles": [{"from": "app/code-assistant/project/default/alice/auth/key", "to": "/workspace/key"}]},
        {"mountPoints": [{"name": "app_kb", "targetPath": "/workspace/kb", "readOnly": False}]},
        {"mountPoints": [{"name": "agent_data", "targetPath": "/workspace/elsewhere", "readOnly": False}]},
        {
            "mountPoints": [
                {"name": "app_kb", "targetPath": "/workspace/kb", "readOnly": True},
                {"name": "project_kb", "targetPath": "/workspace/kb/project", "readOnly": True},
            ]
        },
        {
            "mountPoints": [
                {"name": "app_kb", "targetPath": "/workspace/a", "readOnly": True},
                {"name": "app_kb", "targetPath": "/workspace/b", "readOnly": True},
            ]
        },
    ],
)
def test_a_manifest_that_reaches_out_of_its_app_or_workspace_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check_manifest(_manifest(**wrong))


@pytest.mark.parametrize(
    "wrong", [{"conflictPolicy": "mine"}, {"runtimeVersion": "../1"}, {"unknown": 1}, {"requiredPaths": "/workspace"}]
)
def test_a_manifest_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _manifest(**wrong)


def test_two_manifests_are_compared_field_by_field() -> None:
    newer = _manifest(runtimeVersion="2026.03.01", conflictPolicy="merge", requiredPaths=[])
    found = {difference.field: (difference.old, difference.new) for difference in differences(_manifest(), newer)}
    assert found == {
        "required_paths": (MANIFEST["requiredPaths"], []),
        "conflict_policy": ("keep_session", "merge"),
    }
    assert differences(newer, newer) == []
    mount = newer.mount(MountName.USER_FILES)
    assert mount is not None
    assert mount.target_path == "/workspace/.user-files"
