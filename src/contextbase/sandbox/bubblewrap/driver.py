"""The driver that makes sandboxes with bubblewrap."""

from pathlib import Path

from contextbase.sandbox.bubblewrap.machine import look_at_machine
from contextbase.sandbox.launched import LaunchedDriver
from contextbase.workspaces.model import Owner

__all__ = ["BubblewrapDriver"]


class BubblewrapDriver(LaunchedDriver):
    """`extra_read_only`: folders of this machine that sandboxes see, too, at the same place."""

    def __init__(self, root: Path, *, owner: Owner, node: str, extra_read_only: tuple[Path, ...] = ()) -> None:
        super().__init__(
            "bubblewrap",
            root,
            owner=owner,
            node=node,
            prepare=lambda: look_at_machine(root, owner, extra_read_only),
        )
