"""Checks of what a caller passes in: a wrong type or value is an `InvalidInput` that names the argument."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from pydantic import ConfigDict, ValidationError, validate_call

from contextbase.errors import InvalidInput

__all__ = ["checked", "input_checked"]

P = ParamSpec("P")
R = TypeVar("R")


def checked(method: Callable[P, R]) -> Callable[P, R]:
    """Check a method's arguments against its annotations on every call. The checks are built on the first call."""
    signature = inspect.signature(method)
    names = tuple(signature.parameters)

    @functools.cache
    def validated() -> Callable[..., Any]:
        return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(method)

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            with input_checked(f"{method.__name__}()", names):
                return await validated()(*args, **kwargs)

        return cast("Callable[P, R]", call_async)

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        with input_checked(f"{method.__name__}()", names):
            return validated()(*args, **kwargs)

    return call


@contextmanager
def input_checked(what: str, names: tuple[str, ...] = ()) -> Iterator[None]:
    """Raise `InvalidInput` for what pydantic rejects. `names`: of the arguments that are passed by position."""
    try:
        yield
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(
            names[part] if position == 0 and isinstance(part, int) and part < len(names) else str(part)
            for position, part in enumerate(problem["loc"])
        )
        reason = problem["msg"].removeprefix("Value error, ").rstrip(".")
        raise InvalidInput(f"{what}: {f'{where}: ' if where else ''}{reason}.") from error
