"""What a conversation with Codex was told last of its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextbase.agents.codex_instructions import instructions_message, last_instructions

THREAD = "01a1ec44-c008-78c3-8e04-72f1c3a84bcf"
ONE, TWO = (f"<place_instructions>\n{text}\n</place_instructions>" for text in ("Be brief.", "Be kind."))


def message(text: str, role: str = "developer") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


@pytest.mark.parametrize(
    ("payloads", "last"),
    [
        ([], None),
        ([message(ONE)], ONE),
        ([message(ONE), message(TWO), message("Other words.")], TWO),
        ([message(ONE), message(TWO, "user")], ONE),  # a person quotes it
        ([message(TWO), {"message": "short", "replacement_history": [message("A"), message(ONE)]}], ONE),
        ([message(ONE), {"role": "developer", "content": "<place_instructions>"}], ONE),
    ],
    ids=["nothing", "one", "another", "quoted", "shortened", "malformed"],
)
def test_what_was_told_last_is_read_from_the_conversations_file(
    tmp_path: Path, payloads: list[dict[str, Any]], last: str | None
) -> None:
    folder = tmp_path / "sessions" / "2026"
    folder.mkdir(parents=True)
    lines = [json.dumps({"type": "response_item", "payload": payload}) for payload in payloads]
    (folder / f"rollout-1-{THREAD}.jsonl").write_text("\n".join([*lines, '{"payload": "<place_instructions>']))
    (folder / "rollout-1-another.jsonl").write_text(json.dumps({"payload": message(TWO)}) + "\n")
    assert last_instructions(tmp_path, THREAD) == last


def test_what_it_knows_is_not_told_again_and_what_is_gone_is_told_once() -> None:
    assert instructions_message(None, None) is None
    assert instructions_message(ONE, ONE) is None
    assert instructions_message(TWO, ONE) == message(TWO)
    gone = instructions_message(None, ONE)
    assert gone is not None
    assert instructions_message(None, gone["content"][0]["text"]) is None
