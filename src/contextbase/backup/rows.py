"""Reads PostgreSQL's binary COPY, as far as needed to look into a backup without a database."""

import struct
from typing import Final

from contextbase.errors import Damaged

__all__ = ["CopyRows", "Row"]

Row = tuple[bytes | None, ...]

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\x00"
_HEADER_BYTES: Final = len(_SIGNATURE) + 8
_COUNT: Final = struct.Struct(">h")
_LENGTH: Final = struct.Struct(">i")


class CopyRows:
    """Takes the stream in pieces of any length and gives the rows that are whole."""

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False
        self._ended = False

    def feed(self, piece: bytes) -> list[Row]:
        data = self._rest + piece
        offset = 0
        if not self._begun:
            if len(data) < _HEADER_BYTES:
                self._rest = data
                return []
            if not data.startswith(_SIGNATURE):
                raise Damaged("This is not a table as PostgreSQL writes it.")
            offset = _HEADER_BYTES + _LENGTH.unpack_from(data, _HEADER_BYTES - 4)[0]
            self._begun = True
        rows: list[Row] = []
        while not self._ended and (found := self._row(data, offset)) is not None:
            row, offset = found
            rows.append(row)
        self._rest = data[offset:]
        return rows

    def finish(self) -> None:
        if not self._ended:
            raise Damaged("The table ends in the middle.")

    def _row(self, data: bytes, offset: int) -> tuple[Row, int] | None:
        """The row at an offset and where it ends; None when it is not all there yet."""
        if len(data) < offset + 2:
            return None
        count = _COUNT.unpack_from(data, offset)[0]
        if count == -1:
            self._ended = True
            return None
        offset += 2
        fields: list[bytes | None] = []
        for _ in range(count):
            if len(data) < offset + 4:
                return None
            length = _LENGTH.unpack_from(data, offset)[0]
            offset += 4
            if length < 0:
                fields.append(None)
                continue
            if len(data) < offset + length:
                return None
            fields.append(data[offset : offset + length])
            offset += length
        return tuple(fields), offset
