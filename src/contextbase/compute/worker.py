"""The program of a worker process: it calls functions for the server until the server goes away.

A message is its length in eight bytes and a pickle: the function and its arguments on the way in; whether it returned,
and what it returned or raised, on the way out.
"""

import os
import pickle
import sys
from typing import BinaryIO, Final

__all__ = ["LENGTH_BYTES", "framed", "main"]

LENGTH_BYTES: Final = 8
_NICENESS: Final = 5


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


def main() -> None:
    """Until standard input ends, which it does when the server closes it or is killed."""
    os.nice(_NICENESS)
    # What is printed must not get between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (message := _received(sys.stdin.buffer)) is not None:
        answers.write(framed(_answer(message)))
        answers.flush()


def _received(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "big")
    message = stream.read(length)
    return message if len(message) == length else None


def _answer(message: bytes) -> bytes:
    try:
        work, arguments = pickle.loads(message)  # noqa: S301 - the server that started us wrote it
        return pickle.dumps((True, work(*arguments)), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the work was asked for
        return pickle.dumps((False, error), protocol=pickle.HIGHEST_PROTOCOL)
