"""Answers of people to questions of agents: checked against what was asked, and told to an agent in words. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from contextbase.agent_vocabulary import PermissionDecision, QuestionKind
from contextbase.conversation.questions import HumanQuestion
from contextbase.errors import InvalidInput, TooLarge

__all__ = ["QuestionReply", "checked_answer", "default_answer", "quoted_answers"]

_LONGEST_TEXT: Final = 64 * 1024
_NOBODY: Final = "Nobody answered in time. Go on without it, as seems best."
_DECISIONS: Final = {
    PermissionDecision.ALLOW_ONCE: "A person allowed it, this once. Do it now if it is still needed.",
    PermissionDecision.ALLOW_SESSION: "A person allowed this tool for the rest of the session.",
    PermissionDecision.DENY: "A person did not allow it.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionReply:
    """What a person sends, before it is checked."""

    values: tuple[str, ...] = ()
    text: str | None = None
    decision: PermissionDecision | None = None
    reason: str | None = None


def checked_answer(question: HumanQuestion, reply: QuestionReply) -> dict[str, Any]:
    """The answer as it is stored. Raises `InvalidInput` for one that the question does not offer."""
    for text in (reply.text, reply.reason):
        if text is not None and ("\0" in text or not _is_encodable(text)):
            raise InvalidInput("The answer has a character that is none: NUL, or half of a surrogate pair.")
        if text is not None and len(text) > _LONGEST_TEXT:
            raise TooLarge(f"The answer has {len(text)} characters; {_LONGEST_TEXT} is the most.")
    if question.kind is QuestionKind.PERMISSION:
        return _decision(reply)
    return _choice(question, reply)


def default_answer(question: HumanQuestion) -> dict[str, Any]:
    """For a question that nobody answered in time: never a permission, else the first of what it offers."""
    if question.kind is QuestionKind.PERMISSION:
        return {"decision": str(PermissionDecision.DENY), "reason": _NOBODY}
    if question.options:
        return {"values": [question.options[0].value]}
    return {"values": [], "text": _NOBODY}


def _decision(reply: QuestionReply) -> dict[str, Any]:
    if reply.decision is None or reply.values or reply.text is not None:
        raise InvalidInput("The agent asks for permission: answer with a decision, allow_once, allow_session or deny.")
    if reply.reason is not None and reply.decision is not PermissionDecision.DENY:
        raise InvalidInput("Only a denial has a reason.")
    return {"decision": str(reply.decision)} | ({"reason": reply.reason} if reply.reason else {})


def _choice(question: HumanQuestion, reply: QuestionReply) -> dict[str, Any]:
    if reply.decision is not None or reply.reason is not None:
        raise InvalidInput("This is a question, and no permission: answer with values or a text.")
    offered = {option.value for option in question.options}
    unknown = [value for value in reply.values if value not in offered]
    if unknown:
        shown = ", ".join(sorted(offered)) or "none: answer with a text"
        raise InvalidInput(f"'{unknown[0][:100]}' is not one of the answers that the question offers ({shown}).")
    if len(set(reply.values)) != len(reply.values) or (len(reply.values) > 1 and not question.multiple):
        raise InvalidInput("The question takes one of its answers." if not question.multiple else "An answer is twice.")
    if not reply.values and not (reply.text and reply.text.strip()):
        raise InvalidInput("The answer is empty; give values or a text.")
    return {"values": list(reply.values)} | ({"text": reply.text} if reply.text else {})


def quoted_answers(answered: Iterable[tuple[HumanQuestion, Mapping[str, Any]]]) -> str:
    """For an agent that does not wait any more: what it asked, and what a person said."""
    return "\n\n".join(f"You asked: {question.prompt}\n{_said(question, answer)}" for question, answer in answered)


def _said(question: HumanQuestion, answer: Mapping[str, Any]) -> str:
    if "decision" in answer:
        reason = f" The reason: {answer['reason']}" if answer.get("reason") else ""
        return _DECISIONS[PermissionDecision(answer["decision"])] + reason
    labels = {option.value: option.label for option in question.options}
    said = [labels.get(value, value) for value in answer["values"]] + ([answer["text"]] if answer.get("text") else [])
    return f"The answer: {', '.join(said)}"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
