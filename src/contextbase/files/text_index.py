"""Which text a file holds, and where its characters are, found by one pass over the bytes. Pure.

A file is text if all of it decodes: as UTF-8, as UTF-16 with a byte order mark, or as GB18030. The pass that proves
this notes every 256 KiB how many characters came before, so any character of a huge file is found by reading 256 KiB.
"""

import codecs
import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["BYTES_SNIFFED", "Charset", "TextIndex", "TextScan", "candidates"]

BYTES_SNIFFED: Final = 64 * 1024
STEP: Final = 256 * 1024

_CONTROLS: Final = bytes(set(range(0x20)) - {*b"\t\n\r\f\b\x1b"})
_GB18030_CHARACTERS: Final = re.compile(rb"[\x81-\xfe](?:[0-9][\x81-\xfe][0-9]|[\x40-\xfe])")


class Charset(StrEnum):
    """How a text is written down. The mark at the start is not a part of the text."""

    UTF_8 = "utf-8"
    UTF_8_MARKED = "utf-8-sig"  # with a byte order mark, as Python spells it
    UTF_16_LITTLE = "utf-16-le"
    UTF_16_BIG = "utf-16-be"
    GB18030 = "gb18030"

    @property
    def mark(self) -> bytes:
        return _MARKS.get(self, b"")

    @property
    def codec(self) -> str:
        """Reads and writes what follows the mark."""
        return "utf-8" if self is Charset.UTF_8_MARKED else self.value

    def text_of(self, body: bytes) -> str:
        """What follows the mark, or a part of it that begins and ends between characters; raises `UnicodeError`."""
        return body.decode(self.codec)

    def bytes_of(self, text: str) -> bytes:
        """A whole file; raises `UnicodeError` for what this charset has no bytes for."""
        return self.mark + text.encode(self.codec)


_MARKS: Final = {
    Charset.UTF_8_MARKED: codecs.BOM_UTF8,
    Charset.UTF_16_LITTLE: codecs.BOM_UTF16_LE,
    Charset.UTF_16_BIG: codecs.BOM_UTF16_BE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TextIndex:
    """`offsets[n]` is where the character number `counts[n]` begins, in bytes from the start of the file."""

    charset: Charset
    characters: int
    size: int
    counts: "array[int]"
    offsets: "array[int]"

    def span(self, start: int, end: int) -> tuple[int, int, int]:
        """The bytes to decode for these characters, and how many characters of the result come before them."""
        first = bisect_right(self.counts, start) - 1
        after = bisect_right(self.counts, end - 1)
        stop = self.offsets[after] if after < len(self.offsets) else self.size
        return self.offsets[first], stop, start - self.counts[first]


class TextScan:
    """Takes a file's bytes in order. Once `is_text` is False it stays so, and the rest need not be read."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self._decoder = codecs.getincrementaldecoder(charset.codec)()
        self._mark_left = len(charset.mark)
        self._characters = 0
        self._size = 0
        self._counts = array("Q", [0])
        self._offsets = array("Q", [len(charset.mark)])
        self._is_chinese = False
        self.is_text = True

    def feed(self, piece: bytes) -> None:
        skipped = min(self._mark_left, len(piece))
        self._mark_left -= skipped
        self._size += skipped
        for start in range(skipped, len(piece), STEP):
            if self.is_text:
                self._step(piece[start : start + STEP])

    def finish(self) -> TextIndex | None:
        """After the last piece; None: it is not text in this charset."""
        if self.is_text:
            try:
                self._decoder.decode(b"", final=True)
            except UnicodeError:
                self.is_text = False
        if not self.is_text:
            return None
        return TextIndex(
            charset=self._charset,
            characters=self._characters,
            size=self._size,
            counts=self._counts,
            offsets=self._offsets,
        )

    def _step(self, part: bytes) -> None:
        whole = self._pending + part
        try:
            text = self._decoder.decode(part)
        except UnicodeError:
            self.is_text = False
            return
        self._size += len(part)
        if "\x00" in text or not self._is_believable(text, whole):
            self.is_text = False
            return
        self._characters += len(text)
        boundary = self._size - len(self._pending)
        if boundary - self._offsets[-1] >= STEP:
            self._counts.append(self._characters)
            self._offsets.append(boundary)

    @property
    def _pending(self) -> bytes:
        """The bytes of a character that was cut off."""
        return self._decoder.getstate()[0]

    def _is_believable(self, text: str, body: bytes) -> bool:
        """Whether bytes that decode as GB18030 are meant to: the first that are not ASCII decide."""
        if self._charset is not Charset.GB18030 or self._is_chinese or text.isascii():
            return True
        self._is_chinese = _looks_chinese(body)
        return self._is_chinese


def candidates(start: bytes, *, is_whole: bool) -> tuple[Charset, ...]:
    """The charsets worth trying for a file that begins like this, the likeliest first; none: it is binary.

    `start` is the first `BYTES_SNIFFED` bytes, or (`is_whole`) all there are."""
    for charset, mark in _MARKS.items():
        if start.startswith(mark):
            return (charset,)
    if b"\x00" in start:
        return ()
    guesses = [Charset.UTF_8]
    if start.translate(None, _CONTROLS) == start:  # many binary files decode as GB18030, too
        guesses.append(Charset.GB18030)
    return tuple(charset for charset in guesses if _decodes(start, charset, is_whole=is_whole))


def _decodes(start: bytes, charset: Charset, *, is_whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(charset.codec)().decode(start, final=is_whole)
    except UnicodeError:
        return False
    return True


def _looks_chinese(part: bytes) -> bool:
    """Chinese text has its high bytes in pairs. In Latin-1 text they stand alone between letters, and some of that
    decodes as well: to characters that nobody wrote."""
    found: list[bytes] = _GB18030_CHARACTERS.findall(part)
    weak = sum(len(character) == 2 and character[1] < 0x80 for character in found)
    return weak <= len(found) / 2
