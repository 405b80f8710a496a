"""HTTP as uvicorn speaks it, with an end to how long a request's headers may get, and a way to break a connection."""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["ABORT", "LimitedHttp"]

ABORT: Final = "contextbase.abort"
"""The extension by which an application breaks a connection whose reader has stopped reading."""

_LONGEST: Final = 64 * 1024


class LimitedHttp(HttpToolsProtocol):
    """Counts what arrives without ending the headers or adding to the body. The parser keeps that in memory, however
    much it is and whoever sends it, with or without a token."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kept = 0

    def data_received(self, data: bytes) -> None:
        self._kept += len(data)
        super().data_received(data)
        if self._kept > _LONGEST and not self.transport.is_closing():
            self.send_400_response(f"The headers are over {_LONGEST} bytes.")

    def on_message_begin(self) -> None:
        self._kept = 0
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.transport.abort}  # type: ignore[dict-item]  # an extension of our own

    def on_headers_complete(self) -> None:
        self._kept = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        super().on_body(body)
