"""The workspace that a refresh is about, and what is known of it when it begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from contextbase.gate.service import OpenedProject
from contextbase.ids import TreePath
from contextbase.merge import MergePolicy, Strategy
from contextbase.workspaces.commit_plan import PendingChange
from contextbase.workspaces.repository import WorkspaceRecord
from contextbase.workspaces.sender import ScanResult

__all__ = ["RefreshTarget", "may_be_shown"]


def may_be_shown(path: TreePath, record: WorkspaceRecord, opened: OpenedProject) -> bool:
    """Whether its opener may see the path, and the token that the workspace was made with was for it, too."""
    scope, place = record.scope, record.paths.in_project(path)
    return (not scope or place == scope or place.is_below(scope)) and opened.authority.sees(place)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshTarget:
    record: WorkspaceRecord
    opened: OpenedProject  # the head that it is brought up to
    look: ScanResult
    pending: Mapping[TreePath, PendingChange]  # what the agent has not committed
    root: Path  # where the agent works
    work: Path  # where what it changed lies

    def shows(self, path: TreePath) -> bool:
        return may_be_shown(path, self.record, self.opened)

    def strategy_for(self, path: TreePath) -> Strategy:
        return self.merge_policy.strategy_for(self.record.paths.in_project(path))

    @property
    def merge_policy(self) -> MergePolicy:
        return self.opened.policy.merge_policy(self.record.principal.id)
