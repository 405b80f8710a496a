"""A base folder with some files, and sandboxes of workers on it."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from contextbase.limits import ResourceLimits
from contextbase.standalone import SandboxEvent, WorkerSandbox

__all__ = ["TEXT", "Site", "lines_of", "tree_of"]

TEXT = "".join(f"line {number}\n" for number in range(1, 31))


@dataclass
class Site:
    folder: Path
    opened: list[WorkerSandbox] = field(default_factory=list)

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def root(self) -> Path:
        return self.folder / "sandboxes"

    def put(self, path: str, content: str | bytes = TEXT, *, mode: int = 0o644) -> Path:
        """Into the base folder, as somebody else would: in place of what was there."""
        place = self.base / path
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f"{place.name}.new")
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.chmod(mode)
        draft.rename(place)
        return place

    def worker(
        self,
        name: str,
        *copied: str,
        task: str = "task",
        limits: ResourceLimits | None = None,
        on_event: Callable[[SandboxEvent], None] | None = None,
        lease_timeout: float = 60,
    ) -> WorkerSandbox:
        """Set up, with copies."""
        sandbox = WorkerSandbox(
            name, task, self.base, limits, root=self.root, on_event=on_event, lease_timeout=lease_timeout
        )
        sandbox.setup()
        self.opened.append(sandbox)
        if copied:
            sandbox.copy(*copied)
        return sandbox

    def close(self) -> None:
        for sandbox in self.opened:
            sandbox.close()


def lines_of(text: str, **changed: str) -> str:
    """The text with some of its lines replaced: `line_3="other"`."""
    lines = text.splitlines()
    for name, line in changed.items():
        lines[int(name.removeprefix("line_")) - 1] = line
    return "\n".join(lines) + "\n"


def tree_of(folder: Path) -> dict[str, tuple[str, bytes, int]]:
    """Everything below it but contextbase's own folder: kind, content and mode by path."""
    found = {}
    for above, names, files in os.walk(folder):
        if Path(above) == folder and ".contextbase" in names:
            names.remove(".contextbase")
        for name in [*names, *files]:
            path = Path(above, name)
            status = path.lstat()
            key = path.relative_to(folder).as_posix()
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.fsencode(path.readlink()), 0)
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", b"", 0)
            else:
                found[key] = ("file", path.read_bytes(), status.st_mode & 0o777)
    return found
