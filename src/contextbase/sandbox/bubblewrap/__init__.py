"""Sandboxes made of the kernel's namespaces, by bubblewrap: no daemon, no image, the programs of this machine."""

from contextbase.sandbox.bubblewrap.driver import BubblewrapDriver

__all__ = ["BubblewrapDriver"]
