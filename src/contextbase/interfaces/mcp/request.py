"""Who asks, as the endpoint found it, and what came beside the arguments."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from contextbase.errors import ContextbaseError, HeldElsewhere
from contextbase.gate.model import check_message_id
from contextbase.tools.model import ToolRequest

__all__ = ["HELD_ELSEWHERE", "note_elsewhere", "request_of"]

# Where clients put the id of the call that a model made; the first that is there counts.
_MESSAGE_KEYS: Final = ("contextbase/messageId", "claudecode/toolUseId", "callId")


HELD_ELSEWHERE: Final = "held_elsewhere"
"""In a request's state: the error that says which machine has to answer."""


def note_elsewhere(request: Request, error: ContextbaseError) -> None:
    """If another machine has to answer, the endpoint sends the request on, whatever is answered here."""
    if isinstance(error, HeldElsewhere):
        setattr(request.state, HELD_ELSEWHERE, error)


def request_of(request: Request, meta: Mapping[str, Any] | None = None) -> ToolRequest:
    state = request.state
    return ToolRequest(
        caller=state.caller, project=state.project, agent=state.agent, message_id=_message_id(meta or {})
    )


def _message_id(meta: Mapping[str, Any]) -> str | None:
    for key in _MESSAGE_KEYS:
        if isinstance(found := meta.get(key), str):
            try:
                check_message_id(found)
            except ContextbaseError:
                continue  # it is but a hint
            return found
    return None
