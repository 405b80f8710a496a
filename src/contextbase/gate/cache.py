"""What one batch learned and the next can use: only what cannot have changed since."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from contextbase.db.database import Connection
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.repository import GateRepository
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, ProjectId, TokenId

__all__ = ["ContentCache", "PolicyBook", "PolicyPage"]

MOST_BYTES: Final = 64 * 1024 * 1024
LARGEST: Final = 1024 * 1024
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


@dataclass(slots=True)
class PolicyPage:
    """One version of a project's policy, and what it means for each token."""

    policy: ProjectPolicy
    _authorities: dict[tuple[TokenId, frozenset[UUID]], PathAuthority] = field(default_factory=dict)

    def authority(self, caller: Caller, groups: frozenset[UUID]) -> PathAuthority:
        key = (caller.token.id, groups)
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

    async def page(self, connection: Connection, project_id: ProjectId, version: int) -> PolicyPage:
        page = self._pages.get(project_id)
        if page is None or page.policy.version != version:
            page = PolicyPage(await self._repository.policy(connection, project_id))
            self._contents.clear()
            if len(self._pages) >= _MOST_PROJECTS:
                self._pages.clear()
            self._pages[project_id] = page
        return page
