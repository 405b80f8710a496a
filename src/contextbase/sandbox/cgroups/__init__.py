"""Control groups: how the kernel holds processes to their limits, and tells what they used.

A node has a folder `contextbase-<name>` below the group that the server itself is in, so that what limits the server
limits its sandboxes, too. In it a sandbox has a group with its limits, and each command a leaf below that.
"""

from contextbase.sandbox.cgroups.discovery import (
    NO_MEMORY,
    find_groups,
    group_at,
    group_named,
    kill_group,
    make_leaf,
    remove_group,
)
from contextbase.sandbox.cgroups.model import NO_LIMITS, ControlGroup, Usage
from contextbase.sandbox.cgroups.separate import SeparateGroups
from contextbase.sandbox.cgroups.unified import UnifiedGroup

__all__ = [
    "NO_LIMITS",
    "NO_MEMORY",
    "ControlGroup",
    "SeparateGroups",
    "UnifiedGroup",
    "Usage",
    "find_groups",
    "group_at",
    "group_named",
    "kill_group",
    "make_leaf",
    "remove_group",
]
