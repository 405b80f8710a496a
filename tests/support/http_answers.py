"""A small real HTTP server for one test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["served_by"]

_POLL_SECONDS = 0.01  # how soon it ends when the test does; the default is half a second


@contextmanager
def served_by(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Its port on 127.0.0.1."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
