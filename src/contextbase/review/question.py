"""What a resolver is asked about an item, and whether its answer can be used. Pure."""

import hashlib
import re
from typing import Final

from contextbase.errors import InvalidInput
from contextbase.merge import Sides
from contextbase.review.assessment import Assessment
from contextbase.review.ports import ContestedText, Proposal, Question
from contextbase.review.resolution import contested, put_together

__all__ = ["UnusableAnswer", "name_of", "question_of", "texts_of"]

MOST_ASKED_BYTES: Final = 32 * 1024
_CONTEXT_LINES: Final = 5
_MARKERS: Final = re.compile(r"^(<{7}|\|{7}|={7}|>{7})", re.MULTILINE)


class UnusableAnswer(Exception):
    """Says why, for the people who look at the item."""


def name_of(standing: Assessment) -> str:
    """The same for as long as the same stretches are contested; empty if there are none to ask about."""
    stretches = contested(standing)
    if stretches is None:
        return ""
    hashed = hashlib.sha256()
    for side in (side for stretch in stretches for side in stretch):
        hashed.update(len(side).to_bytes(8, "big") + side)
    return hashed.hexdigest()


def question_of(standing: Assessment) -> Question | None:
    """The contested stretches with a few lines around each; None if they cannot be told apart, are not text, or are too
    long to be asked about."""
    if contested(standing) is None or standing.merged is None:
        return None
    pieces = standing.merged.pieces
    stretches = []
    try:
        for index, piece in enumerate(pieces):
            if isinstance(piece, Sides):
                base, ours, theirs = (side.decode() for side in piece)
                before = _agreed(pieces[index - 1]) if index else ""
                after = _agreed(pieces[index + 1]) if index + 1 < len(pieces) else ""
                stretches.append(
                    ContestedText(
                        before=_last_lines(before), base=base, ours=ours, theirs=theirs, after=_first_lines(after)
                    )
                )
    except UnicodeDecodeError:
        return None
    length = sum(len(text.encode()) for s in stretches for text in (s.before, s.base, s.ours, s.theirs, s.after))
    if length > MOST_ASKED_BYTES:
        return None
    return Question(path=standing.settled.path, stretches=tuple(stretches))


def texts_of(standing: Assessment, question: Question, proposal: Proposal) -> tuple[bytes, ...]:
    """What is proposed for each stretch; raises `UnusableAnswer` unless nothing else would change, and the file stays
    one of its type."""
    if len(proposal.excerpts) != len(question.stretches):
        raise UnusableAnswer(f"it answered {len(proposal.excerpts)} of {len(question.stretches)} conflicts")
    texts = []
    for stretch, excerpt in zip(question.stretches, proposal.excerpts, strict=True):
        inner = excerpt.removeprefix(stretch.before)
        around = len(stretch.before) + len(stretch.after)
        if not (excerpt.startswith(stretch.before) and inner.endswith(stretch.after)) or len(excerpt) < around:
            raise UnusableAnswer("it changed text that is not contested")
        texts.append(inner[: len(inner) - len(stretch.after)])
    if any(_MARKERS.search(text) for text in texts):
        raise UnusableAnswer("it left conflict markers")
    encoded = tuple(text.encode(errors="replace") for text in texts)
    try:
        put_together(standing, encoded)
    except InvalidInput:
        raise UnusableAnswer("it does not make a valid file") from None
    return encoded


def _agreed(piece: bytes | Sides) -> str:
    return piece.decode() if isinstance(piece, bytes) else ""


def _last_lines(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[-_CONTEXT_LINES:])


def _first_lines(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:_CONTEXT_LINES])
