"""How the states of todos look in a terminal."""

from typing import Final

__all__ = ["TODO_MARKS"]

TODO_MARKS: Final = {"todo": "[ ]", "doing": "[>]", "done": "[x]", "canceled": "[-]"}
