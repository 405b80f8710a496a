"""A command as it may be shown in the audit trail: without what looks like a secret, and not too long. Pure."""

import re
import shlex
from collections.abc import Sequence
from typing import Final

__all__ = ["shown_command"]

_HIDDEN: Final = "***"
_LONGEST: Final = 1000
_LONGEST_LOOKED_AT: Final = 4096

_WORDS: Final = "token|secret|passw(?:or)?d|passwd|pwd|passphrase|credentials?|auth|(?:api|access|private)?[-_]?key"
# Bounded, and only from where a name begins: a long word without a secret in it must not take long.
_NAME: Final = rf"(?<![\w.-])[\w.-]{{0,60}}?(?:{_WORDS})[\w.-]{{0,60}}"
_OPTION: Final = re.compile(rf"(?=-){_NAME}", re.IGNORECASE)
_VALUE: Final = r"""(?:"[^"]*"|'[^']*'|[^\s"'&;|]+)"""

# In order: what is hidden first is not looked at again.
_SUBSTITUTIONS: Final = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), _HIDDEN),
    # scheme://user:password@host
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@'\"]+@", re.IGNORECASE), rf"\1{_HIDDEN}@"),
    # Authorization: Bearer …, X-Api-Key: …, Cookie: …
    (re.compile(rf"((?:\bcookie|{_NAME})\s{{0,8}}:\s{{0,8}})[^\r\n\"']+", re.IGNORECASE), rf"\1{_HIDDEN}"),
    (re.compile(r"\b((?:bearer|basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1{_HIDDEN}"),
    # --token=…, PASSWORD=…, ?api_key=…
    (re.compile(rf"({_NAME}\s{{0,8}}=\s{{0,8}}){_VALUE}", re.IGNORECASE), rf"\1{_HIDDEN}"),
    # --token …, in the text of a script
    (re.compile(rf"((?=-){_NAME}\s{{1,8}})(?!-){_VALUE}", re.IGNORECASE), rf"\1{_HIDDEN}"),
    # What tokens of well-known services look like; ours is cb_.
    (
        re.compile(
            r"\b(?:cb_[\w-]{20,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abeprs]-[\w-]{8,}"
            r"|hf_\w{16,}|npm_\w{16,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)"
        ),
        _HIDDEN,
    ),
)


def shown_command(command: str | Sequence[str]) -> str:
    """A shell's text as it is, a program and its arguments as one would type them."""
    if isinstance(command, str):
        shown = _redacted(command)
    else:
        shown = shlex.join(_redacted_arguments(command)).replace(f"'{_HIDDEN}'", _HIDDEN)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def _redacted_arguments(arguments: Sequence[str]) -> list[str]:
    shown = []
    hide_next = False
    for argument in arguments:
        hides = hide_next and not argument.startswith("-")
        shown.append(_HIDDEN if hides else _redacted(argument))
        hide_next = _OPTION.fullmatch(argument) is not None
        if sum(map(len, shown)) > _LONGEST:
            break
    return shown


def _redacted(text: str) -> str:
    text = text[:_LONGEST_LOOKED_AT]
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)
