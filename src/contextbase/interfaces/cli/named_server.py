"""The server that --server names, for the command that runs now."""

from contextvars import ContextVar

__all__ = ["choose_server", "named_server"]

_named: ContextVar[str | None] = ContextVar("named_server", default=None)


def choose_server(name: str | None) -> None:
    _named.set(name)


def named_server() -> str | None:
    return _named.get()
