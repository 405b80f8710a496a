"""Options of agent programs, by the names their people know: declared by each adapter, checked at the edge."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

__all__ = ["COMMON_OPTIONS", "AgentOption", "OptionKind", "OptionProblem", "checked_options", "profile_of"]

_LONGEST_TEXT: Final = 200
_MOST_VALUES: Final = 100
_LARGEST_NUMBER: Final = 10_000
_OURS: Final = frozenset(
    {
        *("cwd", "workingDirectory", "sessionID", "continueSession", "continue", "resume", "conversationId"),
        *("forkConversation", "mcpServers", "hostname", "port", "autoStartServer", "serverTimeout", "config"),
    }
)
"""Names of the programs' own options that are not for callers: the session decides about them."""


class OptionKind(StrEnum):
    CHOICE = "choice"  # one of a few words
    NAMES = "names"  # a list of texts
    NUMBER = "number"  # from 1 on
    FLAG = "flag"
    SWITCHES = "switches"  # names that are on or off


class OptionProblem(ValueError):
    """What is wrong with an option, for the person who gave it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentOption:
    name: str
    kind: OptionKind
    about: str
    choices: tuple[str, ...] = ()
    profiles: Mapping[str, str] = field(default_factory=dict)  # the profile that a choice stands for


COMMON_OPTIONS: Final = (
    AgentOption(name="mcp", kind=OptionKind.FLAG, about="Whether it gets the tools of this server. Default: true."),
)


def checked_options(program: str, known: Iterable[AgentOption], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, if the program has such options. Raises `OptionProblem`."""
    by_name = {option.name: option for option in (*COMMON_OPTIONS, *known)}
    for name, value in given.items():
        option = by_name.get(name)
        if option is None:
            if name in _OURS:
                raise OptionProblem(f"The option {name!r} is not for you to set: the session decides about it.")
            names = ", ".join(sorted(by_name))
            raise OptionProblem(f"{program} has no option {str(name)[:80]!r} here; it has {names}.")
        if not _fits(option, value):
            raise OptionProblem(f"The option {name!r} of {program} is {_wanted(option)}.")
    return dict(given)


def profile_of(known: Sequence[AgentOption], given: Mapping[str, Any], otherwise: str) -> str:
    """The profile that the options stand for; the last one that says something decides."""
    for option in known:
        otherwise = option.profiles.get(str(given.get(option.name)), otherwise)
    return otherwise


def _fits(option: AgentOption, value: object) -> bool:
    match option.kind:
        case OptionKind.CHOICE:
            return isinstance(value, str) and value in option.choices
        case OptionKind.NAMES:
            return isinstance(value, list) and len(value) <= _MOST_VALUES and all(map(_is_name, value))
        case OptionKind.NUMBER:
            return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LARGEST_NUMBER
        case OptionKind.FLAG:
            return isinstance(value, bool)
        case OptionKind.SWITCHES:
            return (
                isinstance(value, dict)
                and len(value) <= _MOST_VALUES
                and all(_is_name(name) and isinstance(is_on, bool) for name, is_on in value.items())
            )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT and value.isprintable() and value[0] != "-"


def _wanted(option: AgentOption) -> str:
    match option.kind:
        case OptionKind.CHOICE:
            return f"one of {', '.join(option.choices)}"
        case OptionKind.NAMES:
            return f"a list of at most {_MOST_VALUES} names"
        case OptionKind.NUMBER:
            return f"a number from 1 to {_LARGEST_NUMBER}"
        case OptionKind.FLAG:
            return "true or false"
        case OptionKind.SWITCHES:
            return f"an object of at most {_MOST_VALUES} names, each true or false"
