"""One line of a `.gitignore` as a regular expression over bytes, with the meaning git gives it.

Agents choose both the patterns and the paths, so that matching must be quick for any two of them. As in
`contextbase.wildcards`, what stands between two wildcards is matched where it fits first (atomic groups): a later place
could not come out better.
"""

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["IgnorePattern"]

_WILD: Final = b"*?[\\"
_CLASSES: Final = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, range(32))) + "\x7f",
    b"digit": string.digits,
    b"graph": "".join(map(chr, range(33, 127))),
    b"lower": string.ascii_lowercase,
    b"print": "".join(map(chr, range(32, 127))),
    b"punct": string.punctuation,
    b"space": " \t\n\r",
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}
_DEEP: Final = {b"": b"", b"**/": b"(?:.*/)?", b"**": b".*"}
_FIRST: Final = {b"": b"", b"**/": b"(?:.*?/)??", b"**": b".*?"}  # the same, going no further than it must


@dataclass(frozen=True, kw_only=True, slots=True)
class IgnorePattern:
    expression: bytes  # for `fullmatch`, with DOTALL
    is_negated: bool  # '!': files that an earlier rule ignored are kept
    folders_only: bool
    by_name: bool  # matches a name in any folder; otherwise a path from the folder that has the ignore file

    @classmethod
    def parse(cls, line: bytes) -> "IgnorePattern | None":
        """None for a comment, an empty line, and a pattern that can match nothing."""
        if line.startswith(b"#"):
            return None
        text = _without_trailing_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
        is_negated = text.startswith(b"!")
        text = text.removeprefix(b"!")
        folders_only = text.endswith(b"/")
        text = text.removesuffix(b"/")
        by_name = b"/" not in text
        text = text.removeprefix(b"/")
        expression = _expression(text)
        if not text or expression is None:
            return None
        return cls(expression=expression, is_negated=is_negated, folders_only=folders_only, by_name=by_name)


def _without_trailing_spaces(line: bytes) -> bytes:
    stripped = line.rstrip(b" ")
    backslashes = len(stripped) - len(stripped.rstrip(b"\\"))
    return line[: len(stripped) + 1] if backslashes % 2 else stripped


def _expression(pattern: bytes) -> bytes | None:
    deep, between = [b""], [[b""]]  # what each stretch begins with, and what stands between its stars
    for token in _tokens(pattern):
        if token is None:
            return None
        if token in (b"**/", b"**"):
            deep.append(token)
            between.append([b""])
        elif token == b"*":
            between[-1].append(b"")
        else:
            between[-1][-1] += token
    *stretches, last = zip(deep, between, strict=True)
    before = b"".join(b"(?>%b%b%b)" % (_FIRST[begin], first, _firsts(others)) for begin, (first, *others) in stretches)
    begin, (first, *others) = last
    end = _firsts(others[:-1]) + b"[^/]*" + others[-1] if others else b""  # the last star reaches as far as it must
    return before + _DEEP[begin] + first + end


def _firsts(texts: list[bytes]) -> bytes:
    return b"".join(b"(?>[^/]*?%b)" % text for text in texts)


def _tokens(pattern: bytes) -> Iterator[bytes | None]:
    """Expressions of one byte each, and `*`, `**`, `**/`; None at the end if the pattern can match nothing."""
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"*":
            stars = len(pattern) - at - len(pattern[at:].lstrip(b"*"))
            after = pattern[at + stars :]
            # Git compares the text before the first wildcard by itself, and then sees `**` at a beginning.
            begins = pattern[at - 1 : at] in (b"", b"/") or not any(wild in _WILD for wild in pattern[:at])
            if stars == 1 or not begins or (after and not after.startswith((b"/", b"\\/"))):
                yield b"*"
            elif after.startswith(b"/"):
                yield b"**/"
                at += 1
            else:
                yield b"**"
            at += stars
        elif byte == b"?":
            yield b"[^/]"
            at += 1
        elif byte == b"[":
            found = _set_at(pattern, at + 1)
            if found is None:
                yield None
                return
            expression, at = found
            yield expression
        elif byte == b"\\":
            if at + 1 == len(pattern):
                yield None
                return
            yield re.escape(pattern[at + 1 : at + 2])
            at += 2
        else:
            yield re.escape(byte)
            at += 1


def _set_at(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """The expression of a `[…]` whose members begin at `at`, and where it ends; None if it does not."""
    is_negated = pattern[at : at + 1] in (b"!", b"^")
    at += is_negated
    members: set[int] = set()
    previous = 0  # what a range would begin with; 0: nothing
    is_first = True
    while is_first or pattern[at : at + 1] != b"]":
        is_first = False
        if at >= len(pattern):
            return None
        byte = pattern[at]
        following = pattern[at + 1 : at + 2]
        if byte == ord("\\"):
            at += 1
            if at >= len(pattern):
                return None
            previous = pattern[at]
            members.add(previous)
        elif byte == ord("-") and previous and following not in (b"", b"]"):
            at += 1
            if pattern[at] == ord("\\"):
                at += 1
            if at >= len(pattern):
                return None
            members.update(range(previous, pattern[at] + 1))
            previous = 0
        elif byte == ord("[") and following == b":" and (end := pattern.find(b"]", at + 2)) < 0:
            return None
        elif byte == ord("[") and following == b":" and end > at + 2 and pattern[end - 1 : end] == b":":
            members_of_class = _CLASSES.get(pattern[at + 2 : end - 1])
            if members_of_class is None:
                return None
            members.update(members_of_class.encode())
            previous = 0
            at = end
        else:
            previous = byte
            members.add(byte)
        at += 1
    chosen = (set(range(256)) - members if is_negated else members) - {ord("/")}
    if not chosen:
        return None
    return b"[%b]" % b"".join(b"\\x%02x-\\x%02x" % run for run in _runs(chosen)), at + 1


def _runs(members: set[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each row of neighbours."""
    for first in sorted(members):
        if first - 1 not in members:
            last = first
            while last + 1 in members:
                last += 1
            yield first, last
