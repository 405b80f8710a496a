"""What types cannot say about a runtime manifest, and how two of them differ. Pure."""

from dataclasses import dataclass
from typing import Any, Final

from contextbase.catalog.app_keys import auth_key_of, path_of_key
from contextbase.errors import InvalidInput, InvalidPath
from contextbase.ids import TreePath
from contextbase.wire.manifest import ManifestSpelling, MountName, RuntimeManifest

__all__ = ["WORKSPACE", "ManifestDifference", "check_manifest", "differences", "inside"]

WORKSPACE: Final = "/workspace"
_AGENT_DATA: Final = TreePath(".agent_data")
_REGISTRY: Final = "registry/"
_READ_ONLY: Final = frozenset({MountName.APP_KB, MountName.PROJECT_KB})


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestDifference:
    """A field in which two manifests differ, with its two values."""

    field: str
    old: Any
    new: Any


def inside(path: str) -> TreePath | None:
    """A path of the workspace as it is below it; None: the workspace itself. `InvalidInput` for all others."""
    plain = path.rstrip("/")
    if plain == WORKSPACE:
        return None
    if not plain.startswith(f"{WORKSPACE}/"):
        raise InvalidInput(f"{path[:200]!r} is not in {WORKSPACE}.")
    try:
        return TreePath(plain.removeprefix(f"{WORKSPACE}/"))
    except InvalidPath as error:
        raise InvalidInput(f"{path[:200]!r} is not a path in {WORKSPACE}: {error.message}") from None


def check_manifest(manifest: RuntimeManifest) -> RuntimeManifest:
    """Raises `InvalidInput` that names what is wrong: a key of another app, a path out of the workspace, …"""
    app = manifest.app_id
    for key in (manifest.workspace_template_prefix, *(seed.source for seed in manifest.seed_files)):
        path = path_of_key(app, key)
        if not f"{path}/".startswith(_REGISTRY) or auth_key_of(path):
            raise InvalidInput(f"{key[:200]!r} is not below app/{app}/{_REGISTRY}: templates and seeds are there.")
    for path_text in (*manifest.required_paths, *manifest.protected_paths):
        inside(path_text)
    for seed in manifest.seed_files:
        _below(seed.to)
    for rule in manifest.cleanup_rules:
        _below(rule.path)
    _check_mounts(manifest)
    return manifest


def differences(old: RuntimeManifest, new: RuntimeManifest) -> list[ManifestDifference]:
    """In the order of the fields. The version is what was compared, and is none."""
    before, after = old.to_json(ManifestSpelling.SNAKE), new.to_json(ManifestSpelling.SNAKE)
    names = [name for name in before if name != "runtime_version" and before[name] != after[name]]
    return [ManifestDifference(field=name, old=before[name], new=after[name]) for name in names]


def _below(path: str) -> TreePath:
    found = inside(path)
    if found is None:
        raise InvalidInput(f"{path[:200]!r} is the whole workspace; name something in it.")
    return found


def _check_mounts(manifest: RuntimeManifest) -> None:
    targets: dict[TreePath, MountName] = {}
    for point in manifest.mount_points:
        target = _below(point.target_path)
        if point.name in targets.values():
            raise InvalidInput(f"There are two mount points {point.name}.")
        for other, name in targets.items():
            if target == other or target.is_below(other) or other.is_below(target):
                raise InvalidInput(f"The mount points {name} and {point.name} are in one another.")
        if point.name in _READ_ONLY and not point.read_only:
            raise InvalidInput(f"The mount point {point.name} is read-only: knowledge is changed in the app.")
        if point.name is MountName.AGENT_DATA and (target != _AGENT_DATA or point.read_only):
            raise InvalidInput(f"The mount point agent_data is {WORKSPACE}/{_AGENT_DATA}, and can be written.")
        targets[target] = point.name
