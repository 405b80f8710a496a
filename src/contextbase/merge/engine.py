"""git's line merge first, the structured merge where that conflicts or breaks the file, conflicts for the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from contextbase.merge import lines
from contextbase.merge.budget import Budget, BudgetSpent, Steps
from contextbase.merge.crdt import merge_crdt
from contextbase.merge.formats import FORMATS, PROSE
from contextbase.merge.model import ContestedPlace, MergeConflict, Merged, MergeOutcome, PlaceKind, Reason, Sides
from contextbase.merge.policy import MergePolicy, Strategy
from contextbase.merge.ports import InvalidResult, Unstructured
from contextbase.merge.rules import settle_contained, settle_lines, settle_prose
from contextbase.merge.shared import alike
from contextbase.merge.sniff import AS_IT_IS, decode, file_type, is_binary, is_wide, respell
from contextbase.merge.structure import merge_structured
from contextbase.merge.texts import Texts
from contextbase.merge.words import suggest

__all__ = ["is_long_merge", "merge"]

MAX_STRUCTURED_BYTES: Final = 8 << 20
MAX_TEXT_BYTES: Final = 64 << 20
_RULE_STEPS: Final = 4_000_000  # for the rules about contested lines, of all places in the file together
_SUGGESTION_STEPS: Final = 400_000  # likewise, for suggestions

_DEFAULT_POLICY: Final = MergePolicy()
_MUCH: Final = 16 * 1024  # bytes of one side: about what takes a few milliseconds
_WHOLE: Final = frozenset({Strategy.LAST_WRITER, Strategy.PRIORITY})


def merge(
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    *,
    path: str,
    policy: MergePolicy = _DEFAULT_POLICY,
) -> Merged:
    """Merge what is in the head (ours) with what a writer brings (theirs), both made from base.

    None means that the file does not exist there. Never raises, whatever the bytes.
    """
    if theirs in (ours, base):
        return Merged(content=ours, outcome=MergeOutcome.UNCHANGED, strategy="trivial")
    if ours == base:
        return Merged(content=theirs, outcome=MergeOutcome.FAST_FORWARD, strategy="trivial")
    strategy = policy.strategy_for(path)
    if strategy is Strategy.LAST_WRITER:
        return _whole(theirs, other=ours, strategy=strategy)
    if strategy is Strategy.PRIORITY and policy.ours_rank > policy.theirs_rank:
        return _whole(ours, other=theirs, strategy=strategy)
    if strategy is Strategy.PRIORITY:
        return _whole(theirs, other=ours, strategy=strategy)
    if ours is None or theirs is None:
        merged = _conflict_of_files(base, ours, theirs, Reason.DELETED_AND_CHANGED)
    elif any(map(is_binary, (base or b"", ours, theirs))):
        merged = _whole(theirs, other=ours, strategy=Strategy.LAST_WRITER, notes=("It is binary: the last writer's.",))
    elif max(len(base or b""), len(ours), len(theirs)) > MAX_TEXT_BYTES:
        note = f"It is over {MAX_TEXT_BYTES >> 20} MiB: the last writer's."
        merged = _whole(theirs, other=ours, strategy=Strategy.LAST_WRITER, notes=(note,))
    elif strategy is Strategy.CRDT:
        return merge_crdt(base or b"", ours, theirs, seconds=policy.seconds)
    elif not lines.can_be_merged(base or b"", ours, theirs):
        note = "Its lines differ too much to be merged: the file is contested as a whole."
        merged = replace(_conflict_of_files(base, ours, theirs, Reason.BOTH_CHANGED), notes=(note,))
        strategy = Strategy.AUTO if strategy is Strategy.UNION else strategy
    else:
        merged = _TextMerge(base or b"", ours, theirs, path=path, seconds=policy.seconds).merged()
    return _by_strategy(merged, strategy, base, ours, theirs)


def is_long_merge(base: bytes | None, ours: bytes | None, theirs: bytes | None, path: str, policy: MergePolicy) -> bool:
    """Whether the merge may take more than a few milliseconds."""
    if ours is None or theirs is None or max(len(base or b""), len(ours), len(theirs)) <= _MUCH:
        return False
    if policy.strategy_for(path) in _WHOLE or theirs in (ours, base) or ours == base:
        return False
    return not any(map(is_binary, (base or b"", ours, theirs)))


def _by_strategy(
    merged: Merged, strategy: Strategy, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> Merged:
    """What the policy makes of an automatic merge."""
    if strategy is Strategy.REVIEW and merged.outcome is not MergeOutcome.CONFLICT:
        asked = _conflict_of_files(base, ours, theirs, Reason.REVIEW)
        conflict = replace(asked.conflicts[0], suggestion=merged.content)
        return replace(asked, strategy=strategy, conflicts=(conflict,), notes=merged.notes)
    if merged.outcome is not MergeOutcome.CONFLICT:
        return merged
    if strategy is Strategy.OURS:
        content = merged.partial if merged.pieces else ours
        return _whole(content, other=theirs, strategy=strategy, notes=merged.notes)
    if strategy is Strategy.THEIRS:
        content = _taking_theirs(merged) if merged.pieces else theirs
        return _whole(content, other=ours, strategy=strategy, notes=merged.notes)
    if strategy is Strategy.UNION and ours is not None and theirs is not None:
        content = lines.merge_lines_union(base or b"", ours, theirs)
        return _whole(content, other=None, strategy=strategy, notes=merged.notes)
    return merged


class _TextMerge:
    """One merge of three texts of the same path."""

    def __init__(self, base: bytes, ours: bytes, theirs: bytes, *, path: str, seconds: float) -> None:
        self.sides = Sides(base, ours, theirs)
        kind = file_type(path, ours)
        self.readers = FORMATS.get(kind, ())
        self.is_prose = kind in PROSE
        self.contested: Sides | None = None  # of prose: the sides with everything merged that merges by line
        self.pieces: list[bytes | Sides] = []  # of data whose lines conflict: what merges, and what is contested
        self.budget = Budget(seconds)
        self.rule_steps = Steps(_RULE_STEPS)
        self.notes: list[str] = []
        if self.readers and max(map(len, self.sides)) > MAX_STRUCTURED_BYTES:
            self.readers = ()
            self.notes.append(f"It is over {MAX_STRUCTURED_BYTES >> 20} MiB: merged as lines, not checked.")

    def merged(self) -> Merged:
        is_one_wide = any(map(is_wide, self.sides))
        if is_one_wide and self.texts is None:
            return replace(_conflict_of_files(*self.sides, Reason.BOTH_CHANGED), notes=tuple(self.notes))
        by_line = None if is_one_wide else self._merge_lines()
        if by_line is None and self.texts is not None:
            by_line = _merge_respelled(self.texts)
        if by_line is not None and self._may_stand(by_line):
            return Merged(content=by_line, outcome=MergeOutcome.MERGED, strategy="lines", notes=tuple(self.notes))
        merged = self._structured()
        if merged is None and by_line is not None:
            self.notes.append("Its lines merge, but not to a valid file.")
            merged = _conflict_of_files(*self.sides, Reason.BOTH_CHANGED)
        merged = merged or self._line_by_line()
        if merged.outcome is MergeOutcome.CONFLICT and self.pieces:
            merged = self._contained(merged.conflicts) or merged
        return replace(merged, notes=tuple(self.notes)) if self.notes else merged

    @cached_property
    def texts(self) -> Texts | None:
        try:
            return Texts.read(*self.sides)
        except Unstructured as problem:
            self.notes.append(f"Merged as lines: {problem}.")
            return None

    def _merge_lines(self) -> bytes | None:
        if not self.readers:
            return lines.merge_lines(*self.sides)
        merged = lines.merge_or_contest(*self.sides)
        if isinstance(merged, bytes):
            return merged
        if not self.is_prose:
            self.pieces = merged
            return None
        pieces = [
            piece if isinstance(piece, bytes) else settle_prose(piece, bound=self.rule_steps) or piece
            for piece in merged
        ]
        sides = Sides(*(b"".join([p if isinstance(p, bytes) else p[side] for p in pieces]) for side in range(3)))
        if sides.base == sides.ours == sides.theirs:
            return sides.ours
        self.contested = sides
        return None

    def _may_stand(self, content: bytes) -> bool:
        """Whether a clean line merge is as valid as the sides were."""
        try:
            text = decode(content)[0] if self.readers else ""
            for reader in self.readers:
                if reader.is_valid(text, self.budget):
                    return True
                if all(reader.is_valid(decode(side)[0], self.budget) for side in self.sides if side):
                    return False
        except UnicodeDecodeError:
            self.notes.append("Merged as lines, not checked: it is not valid text.")
        except BudgetSpent:
            self.notes.append("Merged as lines, not checked: there was no time left.")
        return True

    def _structured(self) -> Merged | None:
        if self.texts is None:
            return None
        problem = ""
        texts = self.texts
        if (
            self.contested is not None
            and not texts.differ_in_spelling
            and not _agree_by_chance(self.sides, self.contested)
        ):
            texts = Texts.read(*self.contested)
        for reader in self.readers:
            try:
                return merge_structured(texts, reader, self.budget)
            except InvalidResult as reason:
                problem = str(reason)
                break
            except Unstructured as reason:
                problem = problem or str(reason)
            except RecursionError:
                problem = "it is nested too deep"
            except BudgetSpent:
                problem = "there was no time left"
                break
        if problem:
            self.notes.append(f"Merged as lines: {problem}.")
        return None

    def _contained(self, conflicts: Sequence[MergeConflict]) -> Merged | None:
        """The merge of lines, if wherever it conflicts one side has all changes of the other. A side that changed what
        the other deleted does not have that deletion, whatever the lines look like."""
        if self.texts is None or self.texts.differ_in_spelling:
            return None
        deletions = [conflict for conflict in conflicts if conflict.reason is Reason.DELETED_AND_CHANGED]
        ours_deletes = any(conflict.ours is None for conflict in deletions)
        theirs_deletes = any(conflict.theirs is None for conflict in deletions)
        settled: list[bytes] = []
        for piece in self.pieces:
            chosen = settle_contained(piece, bound=self.rule_steps) if isinstance(piece, Sides) else piece
            if chosen is None:
                return None
            if isinstance(piece, Sides) and (theirs_deletes if chosen == piece.ours else ours_deletes):
                return None
            settled.append(chosen)
        content = b"".join(settled)
        return (
            Merged(content=content, outcome=MergeOutcome.MERGED, strategy="lines") if self._may_stand(content) else None
        )

    def _line_by_line(self) -> Merged:
        """The merge of lines that conflict: settled by rule, or contested."""
        sides, spelling = self.sides, AS_IT_IS
        if self.texts is not None and self.texts.differ_in_spelling:
            sides, spelling = self.texts.encoded(), self.texts.spelling
        found = lines.conflicting_pieces(*sides)
        pieces = [settle_lines(piece) or piece if isinstance(piece, Sides) else piece for piece in found]
        content = respell(_with_ours(pieces), spelling)
        if not any(isinstance(piece, Sides) for piece in pieces):
            if self._may_stand(content):
                return Merged(content=content, outcome=MergeOutcome.MERGED, strategy="lines")
            pieces, content = found, respell(_with_ours(found), spelling)
        return Merged(
            content=None,
            outcome=MergeOutcome.CONFLICT,
            strategy="lines",
            conflicts=tuple(_conflicts_of(pieces)),
            partial=content,
            pieces=tuple(pieces),
            spelling=spelling,
        )


def _agree_by_chance(sides: Sides, contested: Sides) -> bool:
    """Whether lines that both sides added alike were merged: then the sides are two versions of something new, and what
    they have in common is nothing that both started from."""
    if contested.base == sides.base:
        return False
    added = _lines_apart(contested.base, sides.base)
    for side in (sides.ours, sides.theirs):
        if added:  # mostly one side alone has them
            added &= _lines_apart(side, sides.base)
    return bool(added) and not added.issubset(sides.base.split(b"\n"))


def _lines_apart(text: bytes, other: bytes) -> set[bytes]:
    """The lines of a text without those that both begin and end with: of a long text, most."""
    head, tail = alike(text, other)
    start = text.rfind(b"\n", 0, head) + 1
    end = text.find(b"\n", len(text) - tail)
    return {*text[start : end if end >= 0 else len(text)].split(b"\n")} - {b""}


def _with_ours(pieces: Sequence[bytes | Sides]) -> bytes:
    return b"".join(piece if isinstance(piece, bytes) else piece.ours for piece in pieces)


def _merge_respelled(texts: Texts) -> bytes | None:
    """The line merge of texts that differ in encoding, line ends or final newline, once these are taken off."""
    if not texts.differ_in_spelling:
        return None
    merged = lines.merge_lines(*texts.encoded())
    return None if merged is None else respell(merged, texts.spelling)


def _conflicts_of(pieces: Sequence[bytes | Sides]) -> Iterator[MergeConflict]:
    """The contested stretches, by their lines in the text with ours at all of them."""
    line, bound = 1, Steps(_SUGGESTION_STEPS)
    for piece in pieces:
        if isinstance(piece, bytes):
            line += piece.count(b"\n")
            continue
        base, ours, theirs = piece
        after = line + ours.count(b"\n") + (not ours.endswith(b"\n") and bool(ours))
        yield MergeConflict(
            place=ContestedPlace(kind=PlaceKind.LINES, at=f"{line}-{after - 1}"),
            reason=Reason.BOTH_CHANGED if base else Reason.BOTH_ADDED,
            base=base,
            ours=ours,
            theirs=theirs,
            suggestion=suggest(base, ours, theirs, bound=bound),
        )
        line = after


def _taking_theirs(merged: Merged) -> bytes:
    text = b"".join(piece if isinstance(piece, bytes) else piece.theirs for piece in merged.pieces)
    return respell(text, merged.spelling)


def _whole(content: bytes | None, *, other: bytes | None, strategy: str, notes: tuple[str, ...] = ()) -> Merged:
    return Merged(content=content, outcome=MergeOutcome.MERGED, strategy=strategy, other=other, notes=notes)


def _conflict_of_files(base: bytes | None, ours: bytes | None, theirs: bytes | None, reason: Reason) -> Merged:
    conflict = MergeConflict(
        place=ContestedPlace(kind=PlaceKind.FILE), reason=reason, base=base, ours=ours, theirs=theirs
    )
    return Merged(content=None, outcome=MergeOutcome.CONFLICT, strategy="file", conflicts=(conflict,), partial=ours)
