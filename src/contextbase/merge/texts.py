"""The three sides of a merge as text, with how each is written down kept apart from what it says."""

from dataclasses import dataclass
from typing import TypeVar

from contextbase.merge.model import Sides
from contextbase.merge.ports import Unstructured
from contextbase.merge.sniff import AS_IT_IS, Spelling, decode

__all__ = ["Texts"]

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    base: str
    ours: str
    theirs: str
    spelling: Spelling  # the result's: in each respect that of the side that changed it
    differ_in_spelling: bool  # whether a line merge of the raw bytes compares lines that cannot be equal

    @classmethod
    def read(cls, base: bytes, ours: bytes, theirs: bytes) -> "Texts":
        """Raises `Unstructured` for bytes that are not text in the encoding they claim."""
        try:
            (base_text, was), (ours_text, mine), (theirs_text, other) = map(decode, (base, ours, theirs))
        except UnicodeDecodeError as problem:
            raise Unstructured(f"it is not valid {problem.encoding.upper()}") from problem
        if was is mine is other is AS_IT_IS:
            return cls(base=base_text, ours=ours_text, theirs=theirs_text, spelling=AS_IT_IS, differ_in_spelling=False)
        if not base:
            was = mine
        return cls(
            base=base_text,
            ours=ours_text,
            theirs=theirs_text,
            spelling=Spelling(
                encoding=_changed(was.encoding, mine.encoding, other.encoding),
                mark=_changed(was.mark, mine.mark, other.mark),
                newline=_changed(was.newline, mine.newline, other.newline),
                ends_with_newline=_changed(was.ends_with_newline, mine.ends_with_newline, other.ends_with_newline),
            ),
            differ_in_spelling=not (was == mine == other and was.encoding == "utf-8"),
        )

    def encoded(self) -> Sides:
        return Sides(self.base.encode(), self.ours.encode(), self.theirs.encode())


def _changed(base: Value, ours: Value, theirs: Value) -> Value:
    return theirs if ours == base else ours
