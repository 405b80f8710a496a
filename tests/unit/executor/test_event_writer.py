"""Deltas on their way into the journal."""

from pathlib import Path

import pytest

from contextbase.agents.model import AgentTurn
from contextbase.executor import event_writer
from contextbase.executor.event_writer import EventWriter
from contextbase.executor.journal import EventJournal
from contextbase.executor.questions import Questions


async def test_the_first_words_do_not_wait_and_the_next_ones_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_writer, "_LONGEST_WAIT", 3600.0)
    journal = EventJournal(tmp_path / "journal")
    turn = AgentTurn(run_id="r", attempt=1, provider="scripted", prompt="Do it.", model="m")
    writer = EventWriter(journal, turn, Questions())

    def written() -> list[str]:
        return [event["data"]["text"] for event in journal.events() if event["type"] == "message.delta"]

    for text in ("One", " two", " three"):
        await writer.emit("message.delta", {"message_id": "m", "part": 0, "text": text})
        assert written() == ["One"]
    await writer.emit("message.done", {"message_id": "m", "part": 0, "text": "One two three"})
    assert written() == ["One", " two three"]
    journal.close()
