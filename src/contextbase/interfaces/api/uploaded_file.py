"""The file of a multipart form, as it arrives: nothing of it is held but the piece at hand."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from contextbase.errors import InvalidInput

__all__ = ["UploadedFile"]

_LONGEST_FIELD = 10_000


class UploadedFile:
    """Open it, then read its content once. Fields that come before the file are in `fields`."""

    def __init__(self, request: Request) -> None:
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise InvalidInput("Send the file as multipart/form-data, such as `curl -F file=@data.csv` does.")
        self._stream = request.stream()
        self._parser = MultipartParser(options[b"boundary"], self._callbacks())
        self._header: list[bytes] = [b"", b""]
        self._disposition = b""
        self._part = ""  # the field that is being read; empty: the file
        self._ready: list[bytes] = []
        self._files = 0
        self.name = ""
        self.fields: dict[str, str] = {}

    async def open(self) -> None:
        """Read up to the file; raises `InvalidInput` if there is none."""
        while not self._files:
            if not await self._feed():
                raise InvalidInput("The form has no file.")

    async def content(self) -> AsyncIterator[bytes]:
        while True:
            for piece in self._ready:
                yield piece
            self._ready.clear()
            if not await self._feed():
                break
        for piece in self._ready:
            yield piece

    async def _feed(self) -> bool:
        """False: the request has ended."""
        try:
            async for piece in self._stream:
                if piece:
                    self._parser.write(piece)
                    return True
            self._parser.finalize()
        except FormParserError as error:
            raise InvalidInput(f"The form cannot be read: {error}.") from None
        return False

    def _callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._add_to_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._add_to_header(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._take,
        }

    def _begin(self) -> None:
        self._header, self._disposition = [b"", b""], b""

    def _add_to_header(self, which: int, piece: bytes) -> None:
        self._header[which] += piece

    def _end_header(self) -> None:
        if self._header[0].lower() == b"content-disposition":
            self._disposition = self._header[1]
        self._header = [b"", b""]

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"filename" not in options:
            self._part = options.get(b"name", b"").decode(errors="replace") or "?"
            return
        self._part = ""
        self._files += 1
        if self._files > 1:
            raise InvalidInput("The form has several files; send one with each request.")
        try:
            self.name = options[b"filename"].decode()
        except UnicodeDecodeError:
            raise InvalidInput("The file's name is not UTF-8.") from None

    def _take(self, data: bytes, start: int, end: int) -> None:
        piece = data[start:end]
        if not self._part:
            self._ready.append(piece)
            return
        text = self.fields.get(self._part, "") + piece.decode(errors="replace")
        if len(text) > _LONGEST_FIELD or len(self.fields) > 20:
            raise InvalidInput(f"The field {self._part[:80]!r} of the form is too long.")
        self.fields[self._part] = text
