"""What one batch learned and the next can use: only what cannot have changed since."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from contextbase.db.database import Connection
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.read_model import SnapshotEntry
from contextbase.gate.repository import GateRepository
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, PrincipalId, ProjectId, Seq, TokenId

__all__ = ["ContentCache", "PolicyBook", "PolicyPage", "TreeCache"]

MOST_BYTES: Final = 64 * 1024 * 1024
LARGEST: Final = 1024 * 1024
MOST_ENTRIES: Final = 100_000  # about 100 MB
LARGEST_TREE: Final = 20_000
_MOST_AUTHORITIES: Final = 10_000
_MOST_PROJECTS: Final = 1_000


class ContentCache:
    """The contents that were used last. They are named by what they hold, so they never go stale."""

    def __init__(self) -> None:
        self._contents: OrderedDict[ContentHash, bytes] = OrderedDict()
        self._bytes = 0

    def find(self, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        found = {name: self._contents[name] for name in names if name in self._contents}
        for name in found:
            self._contents.move_to_end(name)
        return found

    def clear(self) -> None:
        self._contents.clear()
        self._bytes = 0

    def keep(self, name: ContentHash, content: bytes) -> None:
        if name in self._contents or len(content) > LARGEST:
            return
        self._contents[name] = content
        self._bytes += len(content)
        while self._bytes > MOST_BYTES:
            _, oldest = self._contents.popitem(last=False)
            self._bytes -= len(oldest)


class TreeCache:
    """The whole trees that were read last, without contents. A snapshot is a number: what it holds never changes."""

    def __init__(self) -> None:
        self._trees: OrderedDict[tuple[ProjectId, UUID, Seq], tuple[SnapshotEntry, ...]] = OrderedDict()
        self._entries = 0

    def find(self, snapshot: tuple[ProjectId, UUID, Seq]) -> tuple[SnapshotEntry, ...] | None:
        if snapshot in self._trees:
            self._trees.move_to_end(snapshot)
        return self._trees.get(snapshot)

    def keep(self, snapshot: tuple[ProjectId, UUID, Seq], entries: Sequence[SnapshotEntry]) -> None:
        if snapshot in self._trees or len(entries) > LARGEST_TREE:
            return
        self._trees[snapshot] = tuple(entries)
        self._entries += len(entries)
        while self._entries > MOST_ENTRIES:
            _, oldest = self._trees.popitem(last=False)
            self._entries -= len(oldest)


@dataclass(slots=True)
class PolicyPage:
    """One version of a project's policy, and what it means for each token and whom it acts for."""

    policy: ProjectPolicy
    _authorities: dict[tuple[TokenId, PrincipalId, frozenset[UUID]], PathAuthority] = field(default_factory=dict)

    def authority(self, caller: Caller, groups: frozenset[UUID]) -> PathAuthority:
        key = (caller.token.id, caller.principal.id, groups)
        if key not in self._authorities:
            if len(self._authorities) >= _MOST_AUTHORITIES:
                self._authorities.clear()
            self._authorities[key] = self.policy.authority(caller, groups)
        return self._authorities[key]


class PolicyBook:
    """The policy of each project as it was last seen. Its version, read with the head, says whether it still holds.

    Also a purge gives the project a new version: then contents are forgotten too."""

    def __init__(self, repository: GateRepository, contents: ContentCache) -> None:
        self._repository = repository
        self._contents = contents
        self._pages: dict[ProjectId, PolicyPage] = {}

    def known(self, project_id: ProjectId, version: int) -> PolicyPage | None:
        page = self._pages.get(project_id)
        return None if page is None or page.policy.version != version else page

    async def page(self, connection: Connection, project_id: ProjectId, version: int) -> PolicyPage:
        page = self.known(project_id, version)
        if page is None:
            page = PolicyPage(await self._repository.policy(connection, project_id))
            self._contents.clear()
            if len(self._pages) >= _MOST_PROJECTS:
                self._pages.clear()
            self._pages[project_id] = page
        return page
