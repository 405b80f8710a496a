"""The mirrors of this machine, one for each project, epoch and account of the agents."""

from pathlib import Path
from typing import Final

from contextbase.threads import in_thread
from contextbase.workspaces.keyed_names import KeyedNames
from contextbase.workspaces.layer_view import LayerView
from contextbase.workspaces.mirror import Mirror
from contextbase.workspaces.model import Owner, SnapshotKey
from contextbase.workspaces.pins import Pins, Stack
from contextbase.workspaces.ports import SnapshotSource

__all__ = ["Mirrors"]

_MOST_VIEWS: Final = 64


class Mirrors:
    def __init__(self, root: Path, source: SnapshotSource, *, owner: Owner) -> None:
        self.owner = owner
        self.pins = Pins(root)
        self.names = KeyedNames(root)
        self._folder = root / "mirror"
        self._source = source
        self._open: dict[Path, Mirror] = {}
        self._views: dict[tuple[str, ...], LayerView] = {}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)  # it names the projects that have one

    def of(self, snapshot: SnapshotKey) -> Mirror:
        return self._mirror(self.folder_of(snapshot))

    def folder_of(self, snapshot: SnapshotKey) -> Path:
        return self._folder / str(snapshot.project_id) / f"{snapshot.epoch}.{self.owner.uid}"

    async def evict(self, *, cap: int) -> int:
        """Remove layers that nothing stands on until all mirrors together have `cap` bytes; returns what was freed.
        The cap is shared out by what each mirror holds."""
        sizes = [(mirror, await mirror.size()) for mirror in await in_thread(self._on_disk)]
        total = sum(size for _, size in sizes)
        if total <= cap:
            return 0
        return sum([await mirror.evict(cap=cap * size // total) for mirror, size in sizes])

    def layer_view(self, stack: Stack) -> LayerView:
        """Shared by all who stand on the same layers: what one looked up, the next knows."""
        view = self._views.pop(stack.shown, None) or LayerView(stack.shown)
        self._views[stack.shown] = view  # now the newest
        while len(self._views) > _MOST_VIEWS:
            self._views.pop(next(iter(self._views)), None)
        return view

    def _mirror(self, folder: Path) -> Mirror:
        if folder not in self._open:
            self._open[folder] = Mirror(folder, self._source, self.pins, self.names, owner=self.owner)
        return self._open[folder]

    def _on_disk(self) -> list[Mirror]:
        """Also those of an account that the agents had before: they only shrink."""
        return [self._mirror(folder) for folder in self._folder.glob("*/*")]
