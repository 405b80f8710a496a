"""The structured merge of one text: parse the three sides, merge the documents, check the result."""

from collections.abc import Iterable
from itertools import groupby
from typing import TypeGuard, cast

from contextbase.merge.budget import Budget
from contextbase.merge.document import Alternatives, Group, Side, pieces_of
from contextbase.merge.lockstep import Lockstep
from contextbase.merge.model import MergeConflict, Merged, MergeOutcome, Sides
from contextbase.merge.ports import Format, InvalidResult, Unstructured
from contextbase.merge.shared import Shared
from contextbase.merge.sniff import encode
from contextbase.merge.texts import Texts
from contextbase.merge.threeway import Contest, merge_documents

__all__ = ["merge_structured"]


def merge_structured(texts: Texts, reader: Format, budget: Budget) -> Merged:
    """The merge by keys, items or sections.

    Raises `Unstructured` when it cannot be done or does not give a valid file.
    """
    shared = Shared(texts.base, texts.ours, texts.theirs)
    ours, theirs = reader.parse(texts.ours, budget, shared), reader.parse(texts.theirs, budget, shared)
    if ours.kind != theirs.kind:
        raise Unstructured("the sides are of different kinds")
    base = reader.parse(texts.base, budget, shared) if texts.base else ours
    if not texts.base or base.kind != ours.kind:
        base = ours._replace(items=())
    lockstep = Lockstep(texts.base, texts.ours, texts.theirs)
    document, contests = merge_documents(base, ours, theirs, lockstep=lockstep, reader=reader, budget=budget)
    pieces = pieces_of(document)
    text = _text(pieces, "ours")
    # What all sides agree on, or one side has within, is left out; if the rest is not valid, it may be for want of it.
    is_valid = shared.checks_apart and _is_valid_in_short(document, reader, budget)
    if not is_valid and not _is_valid(text, pieces, reader, budget):
        raise InvalidResult("its parts do not make a valid file when merged")
    content = encode(text, texts.spelling)
    if not contests:
        return Merged(content=content, outcome=MergeOutcome.MERGED, strategy=reader.name)
    return Merged(
        content=None,
        outcome=MergeOutcome.CONFLICT,
        strategy=reader.name,
        conflicts=tuple(_conflict(contest, reader) for contest in contests),
        partial=content,
        pieces=_encoded(pieces),
        spelling=texts.spelling,
    )


def _is_valid_in_short(document: Group, reader: Format, budget: Budget) -> bool:
    pieces = pieces_of(document, in_short=True)
    return _is_valid(_text(pieces, "ours"), pieces, reader, budget)


def _is_valid(ours: str, pieces: list[str | Alternatives], reader: Format, budget: Budget) -> bool:
    """Whether it is valid with either side at the contested places."""
    if not reader.is_valid(ours, budget):
        return False
    return _is_plain(pieces) or reader.is_valid(_text(pieces, "theirs"), budget)


def _text(pieces: list[str | Alternatives], side: Side) -> str:
    if _is_plain(pieces):
        return "".join(pieces)
    return "".join([piece if isinstance(piece, str) else getattr(piece, side) for piece in pieces])


def _is_plain(pieces: list[str | Alternatives]) -> TypeGuard[list[str]]:
    """Whether nothing in it is contested."""
    return Alternatives not in map(type, pieces)


def _conflict(contest: Contest, reader: Format) -> MergeConflict:
    sides = (contest.base, contest.ours, contest.theirs, contest.suggestion)
    base, ours, theirs, suggestion = (None if text is None else text.encode() for text in sides)
    return MergeConflict(
        place=reader.place(contest.path),
        reason=contest.reason,
        base=base,
        ours=ours,
        theirs=theirs,
        suggestion=suggestion,
    )


def _encoded(pieces: list[str | Alternatives]) -> tuple[bytes | Sides, ...]:
    encoded: list[bytes | Sides] = []
    for is_text, run in groupby(pieces, key=lambda piece: isinstance(piece, str)):
        if is_text:
            encoded.append("".join(cast("Iterable[str]", run)).encode())
        else:
            encoded += (Sides(*(text.encode() for text in piece)) for piece in run)
    return tuple(encoded)
