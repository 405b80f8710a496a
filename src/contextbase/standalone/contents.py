"""The contents a sandbox was given, and those it gave back: what a later merge starts from. Named by their hash."""

import hashlib
import os
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.durable import flush
from contextbase.ids import ContentHash
from contextbase.workspaces.syscalls import copy_content

__all__ = ["ContentFolder"]

_PIECE: Final = 1 << 20


class ContentFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, source: int, *, durably: bool = False) -> ContentHash:
        """The bytes of an open file, from its start."""
        draft = self._folder / f".draft-{uuid4().hex}"
        hasher = hashlib.sha256()
        try:
            with draft.open("xb") as file:
                os.lseek(source, 0, os.SEEK_SET)
                while piece := os.read(source, _PIECE):
                    hasher.update(piece)
                    file.write(piece)
                file.flush()
                if durably:
                    flush(file.fileno())
            content = ContentHash(hasher.digest())
            draft.replace(self._path(content))
        finally:
            draft.unlink(missing_ok=True)
        return content

    def put_bytes(self, content: bytes) -> ContentHash:
        name = ContentHash.of(content)
        draft = self._folder / f".draft-{uuid4().hex}"
        draft.write_bytes(content)
        draft.replace(self._path(name))
        return name

    def has(self, content: ContentHash) -> bool:
        return self._path(content).is_file()

    def size(self, content: ContentHash) -> int:
        return self._path(content).stat().st_size

    def read(self, content: ContentHash) -> bytes:
        return self._path(content).read_bytes()

    def copy_to(self, content: ContentHash, target: int) -> None:
        """Into an empty open file."""
        with self._path(content).open("rb") as file:
            copy_content(file.fileno(), target)

    def _path(self, content: ContentHash) -> Path:
        return self._folder / str(content)
