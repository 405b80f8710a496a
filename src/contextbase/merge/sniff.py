"""What kind of file it is, and how its text is written: encoding, line ends, final newline."""

import codecs
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["AS_IT_IS", "FileType", "Spelling", "decode", "encode", "file_type", "is_binary", "is_wide", "respell"]


class FileType(StrEnum):
    TEXT = "text"
    JSON = "json"
    JSON_LINES = "jsonl"
    NOTEBOOK = "notebook"
    YAML = "yaml"
    TOML = "toml"
    MARKDOWN = "markdown"
    CHANGELOG = "changelog"
    INI = "ini"
    TABLE = "table"
    LINE_SET = "line-set"


_BY_EXTENSION: Final = {
    "json": FileType.JSON,
    "jsonc": FileType.JSON,
    "json5": FileType.JSON,
    "geojson": FileType.JSON,
    "webmanifest": FileType.JSON,
    "code-workspace": FileType.JSON,
    "jsonl": FileType.JSON_LINES,
    "ndjson": FileType.JSON_LINES,
    "ipynb": FileType.NOTEBOOK,
    "yaml": FileType.YAML,
    "yml": FileType.YAML,
    "toml": FileType.TOML,
    "md": FileType.MARKDOWN,
    "mdx": FileType.MARKDOWN,
    "markdown": FileType.MARKDOWN,
    "ini": FileType.INI,
    "cfg": FileType.INI,
    "conf": FileType.INI,
    "properties": FileType.INI,
    "env": FileType.INI,
    "editorconfig": FileType.INI,
    "csv": FileType.TABLE,
    "tsv": FileType.TABLE,
}
_BY_NAME: Final = {
    ".babelrc": FileType.JSON,
    ".eslintrc": FileType.JSON,
    ".prettierrc": FileType.JSON,
    "composer.lock": FileType.JSON,
    "pipfile": FileType.TOML,
    "cargo.lock": FileType.TOML,
    "poetry.lock": FileType.TOML,
    "uv.lock": FileType.TOML,
    ".clang-format": FileType.YAML,
    ".env": FileType.INI,
    ".gitconfig": FileType.INI,
    ".npmrc": FileType.INI,
    ".gitignore": FileType.LINE_SET,
    ".dockerignore": FileType.LINE_SET,
    ".npmignore": FileType.LINE_SET,
    ".eslintignore": FileType.LINE_SET,
    ".prettierignore": FileType.LINE_SET,
    ".gitattributes": FileType.LINE_SET,
    "codeowners": FileType.LINE_SET,
    "constraints.txt": FileType.LINE_SET,
    "requirements.txt": FileType.LINE_SET,
}
_CHANGELOG_STEMS: Final = frozenset({"changelog", "changes", "history", "news", "releases"})
_PROSE: Final = frozenset({"", "md", "mdx", "markdown", "txt", "rst"})

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FIRST_OF_MARKS: Final = tuple({mark[:1] for mark, _ in _BYTE_ORDER_MARKS})
_PREFIX_LOOKED_AT: Final = 8000  # where git looks for a NUL byte


def file_type(path: str, sample: bytes = b"") -> FileType:
    """By name, then extension, then (for names that say nothing) the first bytes."""
    name = path.rpartition("/")[2].lower()
    stem, dot, extension = name.rpartition(".")
    if not dot:
        stem, extension = name, ""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if stem in _CHANGELOG_STEMS and extension in _PROSE:
        return FileType.CHANGELOG
    if extension == "txt" and ("requirements" in stem or "constraints" in stem):
        return FileType.LINE_SET
    if name.startswith(".env."):
        return FileType.INI
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    if not extension and sample.lstrip()[:1] in (b"{", b"["):
        return FileType.JSON
    return FileType.TEXT


def is_binary(content: bytes) -> bool:
    """git's rule (a NUL among the first 8,000 bytes), except for text that says by its mark that it is UTF-16 or 32."""
    return b"\0" in content[:_PREFIX_LOOKED_AT] and not is_wide(content)


def is_wide(content: bytes) -> bool:
    """Whether it says by its mark that it is UTF-16 or UTF-32, which no line merge of bytes can read."""
    return _marked_encoding(content)[1] not in (None, "utf-8")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spelling:
    """How a text is written down, apart from what it says."""

    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"  # "\r\n" when every line ends so; mixed line ends stay in the text
    ends_with_newline: bool = True


AS_IT_IS: Final = Spelling()


def decode(content: bytes) -> tuple[str, Spelling]:
    """The text with `\\n` line ends and a final newline (unless empty), and how to write it back.

    Raises UnicodeDecodeError for bytes that are not what they say they are.
    """
    mark, encoding = _marked_encoding(content)
    text = content[len(mark) :].decode(encoding or "utf-8")
    newline = "\n"
    if "\r" in text and text.count("\r\n") == text.count("\n") == text.count("\r"):
        newline = "\r\n"
        text = text.replace("\r\n", "\n")
    ends = text.endswith("\n") or not text
    if ends and encoding is None and newline == "\n":
        return text, AS_IT_IS
    spelling = Spelling(encoding=encoding or "utf-8", mark=mark, newline=newline, ends_with_newline=ends)
    return (text if ends else text + "\n"), spelling


def encode(text: str, spelling: Spelling) -> bytes:
    """The inverse of `decode`."""
    if not spelling.ends_with_newline:
        text = text.removesuffix("\n")
    if spelling.newline != "\n":
        text = text.replace("\n", spelling.newline)
    return spelling.mark + text.encode(spelling.encoding)


def respell(text: bytes, spelling: Spelling) -> bytes:
    """UTF-8 text written down in another way."""
    return text if spelling == AS_IT_IS else encode(text.decode(), spelling)


def _marked_encoding(content: bytes) -> tuple[bytes, str | None]:
    if not content.startswith(_FIRST_OF_MARKS):
        return b"", None
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return mark, encoding
    return b"", None
