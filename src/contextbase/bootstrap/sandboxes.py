"""Which driver runs sandboxes here, and with which limits."""

from collections.abc import Awaitable, Callable

from contextbase.config import Settings
from contextbase.limits import ResourceLimits
from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.ports import SandboxDriver
from contextbase.workspaces.node import Node

__all__ = ["limits_of", "sandbox_driver"]


def limits_of(settings: Settings) -> ResourceLimits:
    """The most that a sandbox may use; whoever makes one may ask for less."""
    return ResourceLimits(
        max_memory=settings.sandbox_memory_bytes,
        max_cpu=settings.sandbox_cpu_percent,
        max_processes=settings.sandbox_processes,
        max_execution_time=settings.sandbox_seconds,
        max_output=settings.sandbox_output_bytes,
        max_disk=settings.workspace_max_bytes,
    )


def sandbox_driver(settings: Settings, node: Node) -> Callable[[], Awaitable[SandboxDriver]]:
    """What opens the driver at its first use; `Unavailable` when there can be none."""

    async def open_driver() -> SandboxDriver:
        return BubblewrapDriver(
            node.root / "bubblewrap", owner=node.owner, node=node.name, extra_read_only=settings.sandbox_extra_folders
        )

    return open_driver
