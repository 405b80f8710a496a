"""The arguments of a call, checked against what the tool takes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final

from contextbase.errors import InvalidInput

__all__ = ["ArgumentKind", "Arguments", "Parameter", "checked"]

_MOST_ITEMS: Final = 100
_LONGEST_ITEM: Final = 4096


class ArgumentKind(StrEnum):
    TEXT = "string"
    NUMBER = "integer"
    FLAG = "boolean"
    TEXTS = "array"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    name: str
    kind: ArgumentKind = ArgumentKind.TEXT
    description: str = ""  # left out where the name says it
    is_required: bool = False
    least: int | None = None  # of a number
    most: int | None = None
    longest: int = 4096  # characters of a text

    @property
    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": self.kind.value}
        if self.kind is ArgumentKind.TEXTS:
            schema["items"] = {"type": ArgumentKind.TEXT.value}
        if self.description:
            schema["description"] = self.description
        return schema


class Arguments:
    """Those that were given; each has the kind its parameter asks for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def text(self, name: str, default: str = "") -> str:
        found: str = self._given.get(name, default)
        return found

    def number(self, name: str, default: int) -> int:
        found: int = self._given.get(name, default)
        return found

    def flag(self, name: str) -> bool:
        found: bool = self._given.get(name, False)
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._given.get(name, ()))


def checked(tool: str, parameters: Sequence[Parameter], given: Mapping[str, Any]) -> Arguments:
    """Raises `InvalidInput`, which names the argument and what is wrong with it. A null counts as left out."""
    known = {parameter.name: parameter for parameter in parameters}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(_unknown(tool, name, list(known)))
        if value is not None:
            values[name] = _checked(known[name], value)
    missing = [name for name, parameter in known.items() if parameter.is_required and name not in values]
    if missing:
        raise InvalidInput(f"{tool} needs {' and '.join(missing)}.")
    return Arguments(values)


def _unknown(tool: str, name: str, known: list[str]) -> str:
    shown = repr(name[:60]).encode(errors="backslashreplace").decode()
    if not known:
        return f"{tool} takes no arguments, so leave {shown} out."
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"{tool} has no argument {shown}.{meant} It takes: {', '.join(known)}."


def _checked(parameter: Parameter, value: Any) -> Any:
    name = parameter.name
    match parameter.kind:
        case ArgumentKind.FLAG:
            if not isinstance(value, bool):
                raise InvalidInput(f"{name} must be true or false.")
            return value
        case ArgumentKind.NUMBER:
            return _number(parameter, value)
        case ArgumentKind.TEXTS:
            values = [value] if isinstance(value, str) else value
            if not isinstance(values, list) or not 1 <= len(values) <= _MOST_ITEMS:
                raise InvalidInput(f"{name} must be a list of 1 to {_MOST_ITEMS} texts.")
            return [_text(name, item, _LONGEST_ITEM) for item in values]
        case _:
            return _text(name, value, parameter.longest)


def _text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text.")
    if len(value) > longest:
        raise InvalidInput(f"{name} has {len(value)} characters, and {longest} is the most.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{name} has half of a surrogate pair; send valid Unicode.") from None
    return value


def _number(parameter: Parameter, value: Any) -> int:
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 20:
        value = int(value)  # some models quote numbers
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{parameter.name} must be a whole number.")
    if parameter.least is not None and value < parameter.least:
        raise InvalidInput(f"{parameter.name} must be {parameter.least} or more.")
    if parameter.most is not None and value > parameter.most:
        raise InvalidInput(f"{parameter.name} must be {parameter.most} or less.")
    return value
