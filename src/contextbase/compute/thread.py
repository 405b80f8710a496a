"""Computations in threads of this process: for tests, and for tools that serve nobody else."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

__all__ = ["ThreadCompute"]

Result = TypeVar("Result")


class ThreadCompute:
    async def run(self, owner: Hashable, work: Callable[..., Result], *arguments: Any) -> Result:
        del owner  # nobody takes turns here
        return await asyncio.to_thread(work, *arguments)
