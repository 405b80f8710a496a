"""The MIME type of a file: from its first bytes as well as its name. Pure."""

import mimetypes
from dataclasses import dataclass
from typing import Final

__all__ = ["BYTES_LOOKED_AT", "content_type"]

BYTES_LOOKED_AT: Final = 4096

# Python's own table and what it lacks, not the machine's: every server must find the same.
_NAMES: Final = mimetypes.MimeTypes()
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
for _extension, _type in {
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".epub": "application/epub+zip",
    ".flac": "audio/flac",
    ".jar": "application/java-archive",
    ".jsonl": "application/jsonl",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".parquet": "application/vnd.apache.parquet",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".rs": "text/x-rust",
    ".sql": "application/sql",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}.items():
    _NAMES.add_type(_type, _extension)

_TEXT: Final = "text/plain"
_BINARY: Final = "application/octet-stream"
_TEXTUAL: Final = ("+xml", "+json", "/json", "/jsonl", "/xml", "/javascript", "/sql", "/toml", "/yaml")
_NEVER_TEXT: Final = ("audio/", "font/", "video/")
_MARKS_OF_TEXT: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CONTROLS: Final = bytes(set(range(0x20)) - {*b"\t\n\r\f\b\x1b"})


@dataclass(frozen=True, slots=True)
class _Magic:
    """Bytes that a format begins with. A name is believed if its type starts with one of `also`: some formats are
    containers of many types."""

    type: str
    start: bytes
    offset: int = 0
    also: tuple[str, ...] = ()


_TAR_OFFSET: Final = 257

_MAGIC: Final = (
    _Magic("image/png", b"\x89PNG\r\n\x1a\n"),
    _Magic("image/jpeg", b"\xff\xd8\xff"),
    _Magic("image/gif", b"GIF87a"),
    _Magic("image/gif", b"GIF89a"),
    _Magic("image/tiff", b"II*\x00", also=("image/",)),
    _Magic("image/tiff", b"MM\x00*", also=("image/",)),
    _Magic("image/webp", b"WEBP", 8),
    _Magic("audio/wav", b"WAVE", 8, ("audio/",)),
    _Magic("video/x-msvideo", b"AVI ", 8, ("video/",)),
    _Magic("application/pdf", b"%PDF-", also=("application/",)),
    _Magic("application/zip", b"PK\x03\x04", also=("application/", "model/")),
    _Magic("application/zip", b"PK\x05\x06", also=("application/",)),
    _Magic("application/gzip", b"\x1f\x8b\x08", also=("application/",)),
    _Magic("application/x-bzip2", b"BZh", also=("application/",)),
    _Magic("application/x-xz", b"\xfd7zXZ\x00", also=("application/",)),
    _Magic("application/zstd", b"\x28\xb5\x2f\xfd", also=("application/",)),
    _Magic("application/x-7z-compressed", b"7z\xbc\xaf\x27\x1c"),
    _Magic("application/vnd.rar", b"Rar!\x1a\x07", also=("application/",)),
    _Magic("application/x-tar", b"ustar", _TAR_OFFSET, ("application/",)),
    _Magic("application/x-ole-storage", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", also=("application/",)),
    _Magic("application/vnd.sqlite3", b"SQLite format 3\x00", also=("application/",)),
    _Magic("application/vnd.apache.parquet", b"PAR1"),
    _Magic("application/x-executable", b"\x7fELF", also=("application/",)),
    _Magic("application/wasm", b"\x00asm"),
    _Magic("audio/mpeg", b"ID3", also=("audio/",)),
    _Magic("audio/flac", b"fLaC", also=("audio/",)),
    _Magic("audio/ogg", b"OggS\x00", also=("audio/", "video/", "application/ogg")),
    _Magic("video/mp4", b"ftyp", 4, ("audio/", "image/", "video/")),
    _Magic("video/webm", b"\x1aE\xdf\xa3", also=("audio/", "video/")),
    _Magic("font/woff", b"wOFF", also=("font/", "application/font")),
    _Magic("font/woff2", b"wOF2", also=("font/", "application/font")),
)
_FIRST_BYTES: Final = {8: b"R", 4: b"\x00"}  # of what has its mark further on: RIFF, and the length of a box
_BY_FIRST_BYTE: Final[dict[int, list[_Magic]]] = {}
for _magic in _MAGIC:
    if _magic.offset != _TAR_OFFSET:
        _first = (_magic.start if not _magic.offset else _FIRST_BYTES[_magic.offset])[0]
        _BY_FIRST_BYTE.setdefault(_first, []).append(_magic)
_BY_NO_FIRST_BYTE: Final = [_magic for _magic in _MAGIC if _magic.offset == _TAR_OFFSET]
_TYPES_WITH_MAGIC: Final = frozenset(magic.type for magic in _MAGIC)


def content_type(path: str, start: bytes | None, *, before: str = "", path_before: str = "") -> str:
    """The type of a file at `path` whose content begins with `start` (None: that is not known, as it is of a content
    that only moved). `before` is the type of the version that it follows, which may be its writer's own choice."""
    if start is None:
        return before if before in _TYPES_WITH_MAGIC else _by_name(path) or before
    named = before if before and path == path_before else _by_name(path)
    if not start:
        return named
    for magic in (*_BY_FIRST_BYTE.get(start[0], ()), *_BY_NO_FIRST_BYTE):
        if start.startswith(magic.start, magic.offset):
            return named if named.startswith(magic.also) and named else magic.type
    if _is_text(start):
        return _TEXT if not named or _is_binary(named) else named
    return _BINARY if not named or _is_binary(named) or _is_textual(named) else named


def _by_name(path: str) -> str:
    return _NAMES.guess_type(path)[0] or ""


def _is_binary(named: str) -> bool:
    """Whether every file of this type begins with bytes that we know, or cannot be text."""
    is_image = named.startswith("image/") and not named.endswith("+xml")
    return named in _TYPES_WITH_MAGIC or is_image or named.startswith(_NEVER_TEXT)


def _is_textual(named: str) -> bool:
    return named.startswith("text/") or named.endswith(_TEXTUAL)


def _is_text(start: bytes) -> bool:
    if start.startswith(_MARKS_OF_TEXT):
        return True
    if start.translate(None, _CONTROLS) != start:
        return False
    try:
        start[:BYTES_LOOKED_AT].decode()
    except UnicodeDecodeError as error:
        return error.start > len(start) - 4  # the last character may be cut off
    return True
