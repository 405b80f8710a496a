"""How code that is not async waits: the functions of `aio/waiting.py`."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

__all__ = ["PIECES", "Lock", "Pieces", "each_piece", "in_thread", "repeated", "sleep"]

P = ParamSpec("P")
Result = TypeVar("Result")

Lock = threading.Lock

Pieces = Iterable[bytes]
PIECES: Final = (Iterable,)
_LAST_ROUND_SECONDS: Final = 5.0


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def in_thread(function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """The result of a function. Here it may block."""
    return function(*args, **kwargs)


def each_piece(pieces: Pieces) -> Iterator[bytes]:
    yield from pieces


@contextmanager
def repeated(action: Callable[[], bool], *, every_seconds: float, name: str) -> Iterator[None]:
    """Do something again and again during a block, in a thread, until it answers False."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(every_seconds) and action():
            pass

    repeating = threading.Thread(target=repeat, name=name, daemon=True)
    repeating.start()
    try:
        yield
    finally:
        is_over.set()
        repeating.join(_LAST_ROUND_SECONDS)  # it may wait for an answer, which nobody needs any more
