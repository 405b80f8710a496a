"""The driver that this machine runs sandboxes with, opened at its first use."""

import asyncio
from collections.abc import Awaitable, Callable

from contextbase.errors import Misconfigured
from contextbase.sandbox.ports import SandboxDriver

__all__ = ["MachineDriver"]


class MachineDriver:
    def __init__(self, node: str, open_driver: Callable[[], Awaitable[SandboxDriver]]) -> None:
        self.node = node
        self._open = open_driver
        self._opening = asyncio.Lock()
        self._driver: SandboxDriver | None = None

    async def driver(self, wanted: str | None = None) -> SandboxDriver:
        """`wanted`: the name of the one a sandbox was made with; `Misconfigured` when this server has another now."""
        async with self._opening:
            if self._driver is None:
                self._driver = await self._open()
        if wanted not in (None, self._driver.name):
            raise Misconfigured(
                f"This sandbox was made with {wanted}, and this server runs {self._driver.name} now; set "
                f"sandbox_driver to {wanted}, or remove the sandbox there first."
            )
        return self._driver

    @property
    def name(self) -> str | None:
        """Of the driver; None: none is open."""
        return None if self._driver is None else self._driver.name

    async def close(self) -> None:
        if self._driver is not None:
            await self._driver.close()
