"""A file as a part of a message to a model: its text, an image, or a reference with what is known of it. Pure."""

import base64
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from contextbase.files.model import FileDetails
from contextbase.gate.content_types import BYTES_LOOKED_AT, content_type
from contextbase.storage.model import Kind

__all__ = [
    "BYTES_LOOKED_AT",
    "LARGEST_IMAGE",
    "MOST_CHARACTERS",
    "FileReference",
    "ImagePart",
    "MessagePart",
    "PartKind",
    "TextPart",
    "image_part",
    "part_kind",
]

MOST_CHARACTERS: Final = 50_000
"""Of a text that goes into a message as it is."""
LARGEST_IMAGE: Final = 3_750_000
"""Bytes. In base64 that is 5 MB, the most that model APIs take."""
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class PartKind(StrEnum):
    """What becomes of a file. All but the first two are reasons for a reference."""

    TEXT = "text"
    IMAGE = "image"
    TOO_LARGE = "too_large"
    BINARY = "binary"
    FOLDER = "folder"
    LINK = "link"  # what it leads to may be elsewhere


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ImagePart:
    media_type: str  # as its bytes say, whatever it is called
    data: str  # base64


@dataclass(frozen=True, kw_only=True, slots=True)
class FileReference:
    reason: PartKind


MessagePart = TextPart | ImagePart | FileReference


def part_kind(details: FileDetails, *, characters: int | None, start: bytes) -> PartKind:
    """`characters`: how many it has; None: it is not text. `start`: its first bytes."""
    entry = details.entry
    if entry.kind is not Kind.FILE:
        return PartKind.FOLDER if entry.kind is Kind.DIRECTORY else PartKind.LINK
    if characters is not None:
        return PartKind.TEXT if characters <= MOST_CHARACTERS else PartKind.TOO_LARGE
    if _type_of(start) not in _IMAGES:
        return PartKind.BINARY
    return PartKind.IMAGE if entry.size <= LARGEST_IMAGE else PartKind.TOO_LARGE


def image_part(content: bytes) -> ImagePart:
    return ImagePart(media_type=_type_of(content), data=base64.b64encode(content).decode())


def _type_of(start: bytes) -> str:
    """By the bytes alone."""
    return content_type("", start[:BYTES_LOOKED_AT])
