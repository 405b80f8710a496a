"""Commands run in the test's own process: see the fixture `cb`."""

from collections.abc import Callable

from tests.support.server import Done

__all__ = ["Cli"]

Cli = Callable[..., Done]
