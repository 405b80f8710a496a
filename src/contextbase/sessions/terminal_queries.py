"""Questions that programs ask of a terminal, such as where its cursor is. Pure.

A terminal answers by typing. When old output is shown again, nobody waits for those answers any more: the shell would
take them for somebody's typing.
"""

import re
from typing import Final

__all__ = ["without_queries"]

_CANCEL: Final = b"\x18"
"""Shows nothing, and ends a sequence: what stood around a question cannot become another one."""

_SEQUENCES: Final = re.compile(
    rb"\x1b\[(?:"
    rb"[>=?]?[0-9;]*c"  # what it is (DA)
    rb"|\??[0-9;]*n"  # its state, its cursor (DSR)
    rb"|\??[0-9;]*\$p"  # a mode (DECRQM)
    rb"|>[0-9;]*q"  # its version
    rb"|\?u"  # how it sends keys
    rb"|\?[0-9;]*S"  # its graphics
    rb"|[01]?x"  # its line (DECREQTPARM)
    rb"|[0-9;]*(?:\$w|\*y)"  # its presentation, a checksum of its screen
    rb"|(?:1[1345689]|2[01])[0-9;]*t"  # its window: size, place, title
    rb")"
    rb"|\x1bZ|\x05"  # what it is, as of old
    rb"|\x1bP[$+]q[^\x1b]*\x1b\\"  # a setting, a capability
    rb"|\x1b\](?P<command>[^\x07\x1b]*)(?:\x07|\x1b\\)"  # a color, the clipboard: if one of its parts is a ?
)


def without_queries(output: bytes) -> bytes:
    """What a terminal shows in the same way, and has nothing to answer to."""
    return _SEQUENCES.sub(_replaced, output)


def _replaced(found: re.Match[bytes]) -> bytes:
    command = found["command"]
    return found[0] if command is not None and b"?" not in command.split(b";")[1:] else _CANCEL
