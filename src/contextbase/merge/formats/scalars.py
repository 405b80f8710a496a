"""Rules for a single value both sides changed; every format with values uses them."""

from contextbase.merge.document import Leaf
from contextbase.merge.lines import merge_lines
from contextbase.merge.ports import Resolution
from contextbase.merge.versions import higher, substantial

__all__ = ["resolve_prose", "resolve_scalar"]


def resolve_scalar(base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
    """The version rule; a real change against a mere version bump; the line merge for a value of several lines."""
    text = higher(base and base.text, ours.text, theirs.text)
    if text is None and base is not None:
        text = substantial(base.text, ours.text, theirs.text)
    return resolve_prose(base, ours, theirs) if text is None else Resolution(text)


def resolve_prose(base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
    """The line merge of several lines both sides changed."""
    if base is None or "\n" not in base.text.rstrip("\n"):
        return None
    lines = merge_lines(base.text.encode(), ours.text.encode(), theirs.text.encode())
    return None if lines is None else Resolution(lines.decode())
