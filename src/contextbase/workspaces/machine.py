"""What this machine brings: its folder for workspaces, its mirrors and the provider it can have."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from contextbase.errors import Unavailable
from contextbase.threads import in_thread
from contextbase.workspaces.backend_choice import BackendChoice, choose_provider, open_provider
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import Owner, Quota, ScanLimits
from contextbase.workspaces.ports import FolderBackend, SnapshotSource
from contextbase.workspaces.quotas import open_quotas

__all__ = ["Machine", "Site"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    choice: BackendChoice
    mirrors: Mirrors
    provider: FolderBackend


class Machine:
    """Nothing is tried or made on the machine before the first use. `is_here`: False for a server that is no machine;
    it holds no workspaces."""

    def __init__(
        self,
        name: str,
        root: Path,
        source: SnapshotSource,
        *,
        owner: Owner,
        wanted: str | None,
        largest_file: int,
        quota: Quota,
        is_here: bool = True,
    ) -> None:
        self.name = name
        self.root = root
        self.owner = owner
        self.is_here = is_here
        self._source = source
        self._wanted = wanted
        self._limits = ScanLimits(largest_file=largest_file)
        self._quota = quota
        self._opening = asyncio.Lock()
        self._site: Site | None = None

    def holds(self, name: str) -> bool:
        """Whether what lies on the machine of that name lies here."""
        return self.is_here and name == self.name

    @property
    def backend_name(self) -> str | None:
        """How it makes folders; None: not tried yet."""
        return None if self._site is None else self._site.provider.name

    async def site(self) -> Site:
        if not self.is_here:
            raise Unavailable("This server holds no workspaces; ask again.")
        if self._site is None:
            async with self._opening:
                if self._site is None:
                    self._site = await in_thread(self._open)
        return self._site

    def _open(self) -> Site:
        choice = choose_provider(self.root, wanted=self._wanted)
        mirrors = Mirrors(self.root, self._source, owner=self.owner)
        quotas = open_quotas(self.root, self._quota)
        provider = open_provider(choice, self.root, mirrors, limits=self._limits, quotas=quotas)
        return Site(choice=choice, mirrors=mirrors, provider=provider)
