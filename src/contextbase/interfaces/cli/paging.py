"""All of a list that the server gives in pages."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

__all__ = ["every_page"]


class _Page(Protocol):
    @property
    def next_before(self) -> Any: ...


P = TypeVar("P", bound=_Page)


def every_page(ask: Callable[[Any], P]) -> Iterator[P]:
    """`ask` gets None for the first page, and then the `next_before` of the page before."""
    before = None
    while True:
        page = ask(before)
        yield page
        before = page.next_before
        if before is None:
            return
