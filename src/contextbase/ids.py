"""The values everything is named by: typed ids, content hashes, tree paths, and the clock."""

import hashlib
import os
import re
import time
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NewType, Protocol, Self
from uuid import UUID

from contextbase.errors import InvalidInput, InvalidPath

__all__ = [
    "MAX_PART_BYTES",
    "MAX_PATH_BYTES",
    "RESERVED_FOLDER",
    "Clock",
    "ContentHash",
    "NodeId",
    "PrincipalId",
    "ProjectId",
    "Seq",
    "SystemClock",
    "TokenId",
    "TreePath",
    "VersionId",
    "new_uuid",
]

ProjectId = NewType("ProjectId", UUID)
NodeId = NewType("NodeId", UUID)
VersionId = NewType("VersionId", UUID)
PrincipalId = NewType("PrincipalId", UUID)
TokenId = NewType("TokenId", UUID)
Seq = NewType("Seq", int)

MAX_PATH_BYTES: Final = 1024
MAX_PART_BYTES: Final = 255
RESERVED_FOLDER: Final = ".contextbase"
"""contextbase's own notes in a workspace live here; it is never part of a tree."""

_WORKSPACE_ROOT: Final = "/workspace"
# Breaks no rule if it is no longer than a part may be. Most paths are like this, and each request names some.
_ORDINARY_PATH: Final = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*", re.ASCII)
# Dots of other widths, and leaders of one and two dots: other systems may take them for plain dots.
_LOOKS_FURTHER: Final = frozenset("\uff0e\u2024\u2025\ufe52")
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def new_uuid() -> UUID:
    """A UUIDv7: random, but ordered by time, so that new rows land side by side in their index."""
    milliseconds = time.time_ns() // 1_000_000
    value = int.from_bytes(milliseconds.to_bytes(6, "big") + os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


class Clock(Protocol):
    """Where the time comes from; tests pass one of their own."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class ContentHash(bytes):
    """The sha256 of a blob's bytes: 32 bytes, shown as 64 lower-case hex digits."""

    __slots__ = ()

    def __new__(cls, digest: bytes) -> Self:
        if len(digest) != 32:
            raise InvalidInput(f"A content hash has 32 bytes, not {len(digest)}.")
        return super().__new__(cls, digest)

    @classmethod
    def of(cls, content: bytes) -> Self:
        return cls(hashlib.sha256(content).digest())

    @classmethod
    def parse(cls, text: str) -> Self:
        if not re.fullmatch(r"[0-9a-f]{64}", text):
            raise InvalidInput(f"{text[:80]!r} is not a content hash: 64 lower-case hex digits.")
        return cls(bytes.fromhex(text))

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"ContentHash({self.hex()[:12]}…)"


class TreePath(str):
    """A file's place in a project's tree: relative, `/`-separated, NFC. The only path type past the edges.

    Building one checks every rule and changes nothing: a name that breaks a rule is an `InvalidPath`, never a
    different name. `parse` is for the API and tool edges, where people and agents spell paths more freely.
    """

    __slots__ = ()

    def __new__(cls, path: str) -> Self:
        _check(path, written_as=path)
        return super().__new__(cls, path)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Also takes `./a`, `a/`, `a\\b` and `/workspace/a`; the result obeys every rule of a TreePath."""
        path = text.replace("\\", "/")
        if path.startswith(_WORKSPACE_ROOT + "/"):
            path = path[len(_WORKSPACE_ROOT) + 1 :]
        while path.startswith("./"):
            path = path[2:]
        path = path.rstrip("/") or path
        _check(path, written_as=text)
        return super().__new__(cls, path)

    @classmethod
    def stored(cls, path: str) -> Self:
        """A path that was checked on the way in, such as one from our own tables."""
        return super().__new__(cls, path)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.split("/"))

    @property
    def name(self) -> str:
        return self.rpartition("/")[2]

    @property
    def parent(self) -> "TreePath | None":
        """The folder that holds it; None at the top."""
        head = self.rpartition("/")[0]
        return TreePath.stored(head) if head else None

    @property
    def folders(self) -> "Iterator[TreePath]":
        """The folders it lies in, the nearest first."""
        folder = self.parent
        while folder is not None:
            yield folder
            folder = folder.parent

    def is_below(self, folder: str) -> bool:
        """Whether it lies inside `folder` (at any depth); a path is not below itself."""
        return self.startswith(folder + "/")

    def __truediv__(self, name: str) -> "TreePath":
        return TreePath(f"{self}/{name}")

    def __repr__(self) -> str:
        return f"TreePath({str(self)!r})"


def _check(path: str, *, written_as: str) -> None:
    problem = _broken_rule(path)
    if problem is not None:
        rule, sentence = problem
        shown = _shown(written_as)
        raise InvalidPath(f"The path {shown} is not valid: {sentence}", path=shown, rule=rule)


def _broken_rule(path: str) -> tuple[str, str] | None:
    """The first rule the path breaks, as (name, sentence)."""
    if len(path) <= MAX_PART_BYTES and _ORDINARY_PATH.fullmatch(path):
        return None
    if not path:
        return "empty", "it is empty; name a file or folder."
    if path.startswith("/"):
        return "relative", "it starts with '/'; paths are relative to the project's root."
    if "\\" in path:
        return "separator", "it has a backslash; parts are separated by '/'."
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "utf8", "its name is not valid UTF-8; rename the file."
    if _CONTROL_CHARACTER.search(path):
        return "control", "it has a NUL, newline or other control character."
    if unicodedata.normalize("NFC", path) != path:
        return (
            "nfc",
            "it is not in Unicode normal form C (NFC); rename the file to its composed form.",
        )
    if len(encoded) > MAX_PATH_BYTES:
        return "length", f"it has {len(encoded)} bytes; {MAX_PATH_BYTES} is the most."
    parts = path.split("/")
    for part in parts:
        if not part:
            return "empty_part", "it has an empty part ('//' or a trailing '/')."
        if part in (".", ".."):
            return "dots", f"it has a {part!r} part; write the plain path."
        if _LOOKS_FURTHER & set(part) and not {".", ".."}.isdisjoint(unicodedata.normalize("NFKC", part).split("/")):
            return "look_alike", f"the part {_shown(part)} only looks like a name; it stands for '.' or '..'."
        if len(part.encode()) > MAX_PART_BYTES:
            return "part_length", f"the part {_shown(part)} is over {MAX_PART_BYTES} bytes long."
    if parts[0].casefold() == RESERVED_FOLDER:
        return (
            "reserved",
            f"{RESERVED_FOLDER}/ is contextbase's own folder and never part of a tree.",
        )
    return None


def _shown(text: str) -> str:
    """A path as it may stand in a message: quoted, escaped, and not endless."""
    quoted = repr(text) if text.isprintable() else ascii(text)
    return quoted if len(quoted) <= 120 else quoted[:117] + "…'"
