"""Rules for a single value both sides changed; every format with values uses them."""

from contextbase.merge.document import Leaf
from contextbase.merge.ports import Path, Resolution
from contextbase.merge.versions import higher

__all__ = ["resolve_scalar"]


def resolve_scalar(path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
    """The version rule."""
    text = higher(base and base.text, ours.text, theirs.text)
    return None if text is None else Resolution(text)
