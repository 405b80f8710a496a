"""Answers fit the question, or are refused."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from contextbase.agent_vocabulary import PermissionDecision, QuestionKind, QuestionStatus
from contextbase.conversation.questions import HumanQuestion, QuestionOption
from contextbase.errors import ContextbaseError, InvalidInput, TooLarge
from contextbase.sessions.answers import QuestionReply, checked_answer, quoted_answers

QUESTION = HumanQuestion(
    question_id="q",
    run_id=UUID(int=1),
    attempt=1,
    position=1,
    kind=QuestionKind.QUESTION,
    prompt="Which colour?",
    options=(QuestionOption(value="b", label="Blue"), QuestionOption(value="r", label="Red")),
    multiple=False,
    context={},
    status=QuestionStatus.PENDING,
    deadline=datetime(2026, 1, 1, tzinfo=UTC),
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)
PERMISSION = replace(QUESTION, kind=QuestionKind.PERMISSION, prompt="May the agent use Bash?", options=())
DENY, ONCE = PermissionDecision.DENY, PermissionDecision.ALLOW_ONCE


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (QUESTION, QuestionReply(values=("Green",))),
        (QUESTION, QuestionReply(values=("b", "r"))),
        (replace(QUESTION, multiple=True), QuestionReply(values=("b", "b"))),
        (QUESTION, QuestionReply()),
        (QUESTION, QuestionReply(text="  ")),
        (QUESTION, QuestionReply(decision=ONCE)),
        (QUESTION, QuestionReply(values=("b",), reason="So.")),
        (QUESTION, QuestionReply(text="a\0b")),
        (QUESTION, QuestionReply(text="a\ud800b")),
        (PERMISSION, QuestionReply(values=("b",))),
        (PERMISSION, QuestionReply(text="Yes")),
        (PERMISSION, QuestionReply(decision=ONCE, reason="So.")),
        (PERMISSION, QuestionReply(decision=ONCE, text="Yes")),
        (PERMISSION, QuestionReply()),
    ],
)
def test_an_answer_that_the_question_does_not_offer_is_refused(question: HumanQuestion, reply: QuestionReply) -> None:
    with pytest.raises(InvalidInput):
        checked_answer(question, reply)


def test_an_answer_has_an_end() -> None:
    with pytest.raises(ContextbaseError) as refused:
        checked_answer(QUESTION, QuestionReply(text="x" * 100_000))
    assert isinstance(refused.value, TooLarge)


@pytest.mark.parametrize(
    ("question", "reply", "stored", "told"),
    [
        (QUESTION, QuestionReply(values=("b",)), {"values": ["b"]}, "The answer: Blue"),
        (QUESTION, QuestionReply(text="Mauve"), {"values": [], "text": "Mauve"}, "The answer: Mauve"),
        (
            replace(QUESTION, multiple=True),
            QuestionReply(values=("r", "b"), text="or both"),
            {"values": ["r", "b"], "text": "or both"},
            "The answer: Red, Blue, or both",
        ),
        (PERMISSION, QuestionReply(decision=DENY, reason="No."), {"decision": "deny", "reason": "No."}, "No."),
        (PERMISSION, QuestionReply(decision=ONCE), {"decision": "allow_once"}, "this once"),
    ],
)
def test_an_answer_is_stored_and_quoted_with_its_question(
    question: HumanQuestion, reply: QuestionReply, stored: dict[str, object], told: str
) -> None:
    assert checked_answer(question, reply) == stored
    quoted = quoted_answers([(question, stored)])
    assert question.prompt in quoted
    assert told in quoted
