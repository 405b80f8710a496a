"""What of a content is text, always as UTF-8: the form in which it is indexed, searched and shown. Pure."""

import codecs
from typing import Final

from contextbase.merge.sniff import is_binary, is_wide

__all__ = ["text_of"]

_WIDEST_MARKS: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_FIRST_OF_GB2312: Final = 0xA1


def text_of(content: bytes) -> bytes | None:
    """The text in UTF-8, without a byte order mark; None for what is binary by git's rule.

    UTF-16 and UTF-32 are known by their mark. GB18030 has none: it is recognized where all of the content is valid and
    most characters are of the common Chinese set. What is neither is left as it is, byte by byte: its ASCII is found.
    """
    if is_wide(content):
        encoding = "utf-32" if content.startswith(_WIDEST_MARKS) else "utf-16"
        return content.decode(encoding, errors="replace").encode()
    if is_binary(content):
        return None
    if content.isascii():
        return content
    try:
        content.decode()
    except UnicodeDecodeError:
        return _from_gb18030(content) or content
    return content.removeprefix(codecs.BOM_UTF8)


def _from_gb18030(content: bytes) -> bytes | None:
    try:
        text = content.decode("gb18030")
    except UnicodeDecodeError:
        return None
    # Latin letters with accents, before plain ones, are valid characters too: rare ones, outside of GB2312.
    characters = sum(not character.isascii() for character in text)
    common = sum(byte >= _FIRST_OF_GB2312 for byte in content) // 2
    return text.encode() if common * 4 >= characters * 3 else None
