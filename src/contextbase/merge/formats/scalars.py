"""Rules for a single value both sides changed; every format with values uses them."""

from contextbase.merge.document import Leaf
from contextbase.merge.formats.textlines import lines_of
from contextbase.merge.lines import can_be_merged, merge_lines
from contextbase.merge.ports import Resolution
from contextbase.merge.requirements import settle_requirement
from contextbase.merge.versions import higher
from contextbase.merge.words import having_both

__all__ = ["resolve_prose", "resolve_scalar"]


def resolve_scalar(base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
    """The rules for versions and requirements; the side that has both's changes; the line merge of several lines."""
    text = settle_requirement(base and base.text, ours.text, theirs.text)
    if text is None and base is not None:
        text = having_both(base.text, ours.text, theirs.text)
    return resolve_prose(base, ours, theirs) if text is None else Resolution(text)


def resolve_prose(base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
    """The merge of several lines both sides changed: git's, or, if none came or went, the version rule for each."""
    if base is None:
        return None
    sides = [lines_of(text) for text in (base.text, ours.text, theirs.text)]
    if len(sides[0]) == len(sides[1]) == len(sides[2]):
        lines = [_line(*trio) for trio in zip(*sides, strict=True)]
        return None if None in lines else Resolution("".join(line for line in lines if line is not None))
    texts = (base.text.encode(), ours.text.encode(), theirs.text.encode())
    merged = merge_lines(*texts) if can_be_merged(*texts) else None
    return None if merged is None else Resolution(merged.decode())


def _line(base: str, ours: str, theirs: str) -> str | None:
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else higher(base, ours, theirs)
