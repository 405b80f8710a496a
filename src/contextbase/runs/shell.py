"""A shell that goes on where the last one was: what `cd` did in one command holds for the next."""

from collections.abc import Sequence
from typing import Final

from contextbase.sandbox.model import HOME, WORKSPACE

__all__ = ["continued", "shell_argv"]

_PLACE: Final = f"{HOME}/.contextbase-cwd"
_GO_ON: Final = f'cd -- "$(cat {_PLACE} 2>/dev/null)" 2>/dev/null || cd {WORKSPACE}\n'
_REMEMBER: Final = f"trap 'pwd >{_PLACE}' EXIT\n"
_IN_BASH: Final = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1" bash "$1" "$2"; fi\neval "$1"'


def shell_argv(text: str) -> tuple[str, ...]:
    """What has a shell run `text`: bash where there is one, else sh."""
    return _script('eval "$2"', text)


def continued(command: str | Sequence[str], *, is_placed: bool) -> tuple[str, ...]:
    """What runs a shell's text, or a program, in the folder that the last text went to; `is_placed`: where it is
    started instead."""
    go_on = "" if is_placed else _GO_ON
    if isinstance(command, str):
        return _script(f'{go_on}{_REMEMBER}eval "$2"', command)
    return ("/bin/sh", "-c", f'{go_on}exec "$@"', "sh", *command)


def _script(script: str, text: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", _IN_BASH, "sh", script, text)
