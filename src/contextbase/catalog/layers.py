"""What a layer changes in a session's folder: a three-way comparison of contents, path by path. Pure.

`base` is what the layer had when the folder was last composed, `standing` what the folder has now, `layer` what the
layer has now. What the session did not touch follows the layer; where both changed, the policy decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from contextbase.ids import TreePath
from contextbase.storage.model import Kind
from contextbase.wire.manifest import ConflictPolicy
from contextbase.workspaces.model import FolderContent

__all__ = ["LayerFiles", "LayerStep", "StepAction", "is_protected", "overlay_steps", "template_steps"]


class StepAction(StrEnum):
    WRITE = "write"
    REMOVE = "remove"
    MERGE = "merge"  # base, standing and layer are three contents


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerStep:
    path: TreePath
    action: StepAction


LayerFiles = Mapping[TreePath, FolderContent]


def is_protected(path: TreePath, protected: frozenset[TreePath]) -> bool:
    return path in protected or any(folder in protected for folder in path.folders)


def template_steps(
    policy: ConflictPolicy, protected: frozenset[TreePath], *, base: LayerFiles, standing: LayerFiles, layer: LayerFiles
) -> list[LayerStep]:
    """How the template's files change the folder, by path. A file that the session removed stays away, unless the
    registry is preferred; one that the template lost goes if the session left it as it was."""
    steps = []
    for path in sorted(base.keys() | layer.keys()):
        if is_protected(path, protected):
            continue
        action = _template_action(policy, base.get(path), standing.get(path), layer.get(path))
        if action is not None:
            steps.append(LayerStep(path=path, action=action))
    return steps


def overlay_steps(protected: frozenset[TreePath], *, standing: LayerFiles, layer: LayerFiles) -> list[LayerStep]:
    """What makes a folder equal to a layer that nobody else changes there. Folders are named only if they are empty."""
    steps = []
    for path in sorted(standing.keys() | layer.keys()):
        if is_protected(path, protected) or standing.get(path) == layer.get(path):
            continue
        steps.append(LayerStep(path=path, action=StepAction.WRITE if path in layer else StepAction.REMOVE))
    return steps


def _template_action(
    policy: ConflictPolicy, base: FolderContent | None, standing: FolderContent | None, layer: FolderContent | None
) -> StepAction | None:
    if standing == layer:
        return None
    if standing == base:  # untouched: it follows the template
        return StepAction.REMOVE if layer is None else StepAction.WRITE
    if layer is None:
        return None
    if policy is ConflictPolicy.PREFER_REGISTRY:
        return StepAction.WRITE
    if base == layer or standing is None or policy is ConflictPolicy.KEEP_SESSION:
        return None
    is_text = Kind.FILE is standing.kind is layer.kind
    return StepAction.MERGE if is_text else None
