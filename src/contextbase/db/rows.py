"""Values from rows, where most columns have the names of a dataclass's fields."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import asyncpg

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["Row", "RowShape"]

Row = asyncpg.Record | Mapping[str, Any]
T = TypeVar("T", bound="DataclassInstance")


class RowShape(Generic[T]):
    """Makes values of one dataclass from rows: each field is the column of its name, and NULL stays None.

    `converted` says what some columns go through first. A plain constructor is faster: use that in the hottest reads.
    """

    def __init__(self, kind: type[T], /, **converted: Callable[[Any], object]) -> None:
        names = [field.name for field in fields(kind) if field.init]
        if unknown := converted.keys() - names:
            raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
        self._kind = kind
        self._plain = [name for name in names if name not in converted]
        self._converted = converted

    def __call__(self, row: Row, /, **given: object) -> T:
        """With what is given in place of columns."""
        values = {name: row[name] for name in self._plain if name not in given}
        for name, convert in self._converted.items():
            if name not in given:
                values[name] = None if (value := row[name]) is None else convert(value)
        return self._kind(**values, **given)
