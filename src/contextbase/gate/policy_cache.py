"""Each project's policy as it was last seen, in memory."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from contextbase.db.database import Connection
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.repository import GateRepository
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Caller
from contextbase.ids import PrincipalId, ProjectId
from contextbase.lru_cache import LruCache

__all__ = ["CachedPolicy", "PolicyCache"]

_MOST_AUTHORITIES: Final = 10_000
_MOST_PROJECTS: Final = 1_000


@dataclass(slots=True)
class CachedPolicy:
    """One version of a project's policy, and what it means for each caller."""

    policy: ProjectPolicy
    _authorities: LruCache[Hashable, PathAuthority] = field(default_factory=lambda: LruCache(_MOST_AUTHORITIES))

    def authority(self, caller: Caller, groups: Mapping[PrincipalId, frozenset[UUID]]) -> PathAuthority:
        """`groups`: of the caller, and of whoever limits it."""
        limiting = caller.limited_by
        of_limit = None if limiting is None else groups.get(limiting.id)
        key = (PathAuthority.key_of(caller), groups.get(caller.principal.id), of_limit)
        authority = self._authorities.get(key)
        if authority is None:
            authority = self.policy.authority(caller, groups)
            self._authorities.put(key, authority)
        return authority


class PolicyCache:
    """The policy of each project as it was last seen. Its version, read with the head, says whether it still holds.

    Also a purge gives the project a new version: then contents are forgotten too."""

    def __init__(self, repository: GateRepository, contents: ContentCache) -> None:
        self._repository = repository
        self._contents = contents
        self._pages: LruCache[ProjectId, CachedPolicy] = LruCache(_MOST_PROJECTS)

    def known(self, project_id: ProjectId, version: int) -> CachedPolicy | None:
        page = self._pages.get(project_id)
        return None if page is None or page.policy.version != version else page

    async def page(self, connection: Connection, project_id: ProjectId, version: int) -> CachedPolicy:
        page = self.known(project_id, version)
        if page is None:
            page = CachedPolicy(await self._repository.policy(connection, project_id))
            self._contents.clear()
            self._pages.put(project_id, page)
        return page
