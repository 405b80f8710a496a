"""A shell that goes on where the last one was: what `cd` did in one command holds for the next."""

from collections.abc import Sequence
from typing import Final

from contextbase.sandbox.model import SandboxId

__all__ = ["continued", "shell_argv"]

_IN_BASH: Final = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1" bash "$1" "$2"; fi\neval "$1"'


def shell_argv(text: str) -> tuple[str, ...]:
    """What has a shell run `text`: bash where there is one, else sh."""
    return _script('eval "$2"', text)


def continued(command: str | Sequence[str], sandbox_id: SandboxId, *, is_placed: bool) -> tuple[str, ...]:
    """What runs a shell's text, or a program, in the folder that the sandbox's last text went to; `is_placed`: where it
    is started instead."""
    note = f"/tmp/.contextbase-cwd-{sandbox_id.hex}"  # noqa: S108 - inside, and nobody else knows the name
    go_on = "" if is_placed else f'if [ -f {note} ]; then cd -- "$(cat {note})" 2>/dev/null; fi\n'
    if isinstance(command, str):
        return _script(f"{go_on}trap 'pwd >{note}' EXIT\neval \"$2\"", command)
    return ("/bin/sh", "-c", f'{go_on}exec "$@"', "sh", *command)


def _script(script: str, text: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", _IN_BASH, "sh", script, text)
