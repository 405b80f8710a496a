"""Events of one run as a chat client is sent them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from contextbase.conversation.model import SessionEvent
from contextbase.conversation.ui_stream import Chunk, RunOutcome, RunStream
from contextbase.vocabulary import RunState

__all__ = ["RUN", "RawEvents", "flat", "placed", "streamed"]

RUN = UUID(int=1)
RawEvents = list[tuple[tuple[str, dict[str, object]], int]]  # kind, data and attempt of each

_AT = datetime(2026, 1, 1, tzinfo=UTC)


def placed(raw: RawEvents) -> list[SessionEvent]:
    return [
        SessionEvent(
            number=number, kind=kind, run_id=RUN, attempt=attempt, ts=_AT + timedelta(seconds=number), data=data
        )
        for number, ((kind, data), attempt) in enumerate(raw, start=1)
    ]


def streamed(events: list[SessionEvent], state: RunState | None = RunState.SUCCEEDED) -> list[list[Chunk]]:
    """What each event is sent as. `state`: None while the run works."""
    stream = RunStream(RUN)
    sent = [stream.start(created_at=_AT, provider="scripted", model=None)]
    sent += [stream.chunks(event) for event in events]
    if state is not None:
        outcome = RunOutcome(state=state, message="Why.", landed={"state": "nothing"}, metadata={"cost": 0.5})
        sent.append(stream.end(outcome))
    return sent


def flat(sent: list[list[Chunk]]) -> list[Chunk]:
    return [chunk for chunks in sent for chunk in chunks]
