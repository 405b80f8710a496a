"""The write door, with the cache of contents that reads share with it."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from contextbase.bootstrap.foundation import Foundation
from contextbase.compute.pool import ComputePool
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.drafter import Drafter
from contextbase.gate.large_contents import LargeContents
from contextbase.gate.leader import GroupCommit
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.metrics import GateMetrics
from contextbase.gate.policy_cache import PolicyCache
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate
from contextbase.gate.turns import Turns
from contextbase.leases.repository import LeaseRepository
from contextbase.storage.head import HeadRepository

__all__ = ["WriteDoor", "open_gate"]

_MERGE_WORKERS: Final = max(1, (os.cpu_count() or 1) // 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteDoor:
    gate: Gate
    repository: GateRepository
    contents: ContentCache


@asynccontextmanager
async def open_gate(foundation: Foundation) -> AsyncIterator[WriteDoor]:
    database, catalog = foundation.database, foundation.catalog
    head, repository, contents = HeadRepository(), GateRepository(), ContentCache()
    async with AsyncExitStack() as stack:
        # Workers of its own, so that no project's queue waits for somebody's blame.
        compute = ComputePool(workers=_MERGE_WORKERS, at_once=_MERGE_WORKERS)
        stack.push_async_callback(compute.close)
        large = LargeContents(catalog)
        stack.push_async_callback(large.close)
        policies = PolicyCache(repository, contents)
        group_commit = GroupCommit(
            database=database.writers,
            repository=repository,
            head=head,
            audit=foundation.audit,
            catalog=catalog,
            drafter=Drafter(
                repository=repository,
                policies=policies,
                large=large,
                merges=LongMerges(compute),
                contents=contents,
                leases=LeaseRepository(),
                clock=foundation.clock,
            ),
            metrics=GateMetrics(foundation.metrics),
            turns=Turns(database),
            hint=foundation.notifier.hint_project,
        )
        stack.push_async_callback(group_commit.close)
        gate = Gate(
            database=database,
            repository=repository,
            head=head,
            catalog=catalog,
            large=large,
            policies=policies,
            group_commit=group_commit,
        )
        yield WriteDoor(gate=gate, repository=repository, contents=contents)
