# Generated from aio/lines.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""The lines of an answer as it comes. A line ends with a line feed and with nothing else: what Unicode, and httpx, also
take for the end of one (U+2028, U+0085) may stand in a message or a file's name."""

from collections.abc import Iterator

import httpx

__all__ = ["lines_of"]


def lines_of(response: httpx.Response) -> Iterator[str]:
    rest = b""
    for piece in response.iter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield _text(line)
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
