"""Rules for a single value both sides changed; every format with values uses them."""

from contextbase.merge.document import Leaf
from contextbase.merge.lines import merge_lines
from contextbase.merge.ports import Path, Resolution
from contextbase.merge.versions import higher

__all__ = ["resolve_prose", "resolve_scalar"]


def resolve_scalar(path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
    """The version rule; the line merge for a value of several lines."""
    text = higher(base and base.text, ours.text, theirs.text)
    if text is None and base is not None and "\n" in base.text:
        lines = merge_lines(base.text.encode(), ours.text.encode(), theirs.text.encode())
        text = None if lines is None else lines.decode()
    return None if text is None else Resolution(text)


def resolve_prose(base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
    """The line merge of a block of lines both sides changed."""
    if base is None:
        return None
    lines = merge_lines(base.text.encode(), ours.text.encode(), theirs.text.encode())
    return None if lines is None else Resolution(lines.decode())
