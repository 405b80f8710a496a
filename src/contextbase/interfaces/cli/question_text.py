"""What agents ask, drawn for a terminal, and what a person types in answer."""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from contextbase.agent_vocabulary import PermissionDecision, QuestionKind
from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.output import on_one_line, visible
from contextbase.sdk.options import AnswerOptions
from contextbase.wire.question import QuestionView

__all__ = ["drawn_question", "typed_answer"]

_MOST_LINES: Final = 60  # of a diff
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
_DECISIONS: Final = {
    "allow": PermissionDecision.ALLOW_ONCE,
    "yes": PermissionDecision.ALLOW_ONCE,
    "y": PermissionDecision.ALLOW_ONCE,
    "session": PermissionDecision.ALLOW_SESSION,
    "always": PermissionDecision.ALLOW_SESSION,
    "deny": PermissionDecision.DENY,
    "no": PermissionDecision.DENY,
    "n": PermissionDecision.DENY,
    **{str(decision): decision for decision in PermissionDecision},
    **{str(number): decision for number, decision in enumerate(PermissionDecision, 1)},
}
_OFFERED: Final = ("Allow once", "Allow for this session", "Deny, and say why: 3 REASON")


def drawn_question(question: QuestionView) -> Iterator[Text]:
    """The question, the change that it is about, and what can be answered, numbered."""
    yield Text.assemble(("? ", "yellow"), (visible(question.prompt), "bold"))
    lines = visible(str(question.context.get("diff") or "")).splitlines()
    for line in lines[:_MOST_LINES]:
        yield Text(f"    {line}", _STYLES.get(line[:1], "dim"))
    if len(lines) > _MOST_LINES:
        yield Text(f"    … {len(lines) - _MOST_LINES} more lines", "dim")
    if question.kind is QuestionKind.PERMISSION:
        choices = [(label, "") for label in _OFFERED]
    else:
        choices = [(option.label, option.description) for option in question.options]
    for number, (label, about) in enumerate(choices, 1):
        more = f"  {on_one_line(about)}" if about and about != label else ""
        yield Text.assemble((f"  {number}  ", "cyan"), on_one_line(label), (more, "dim"))
    if question.kind is QuestionKind.QUESTION:
        several = ", several with commas between" if question.multiple else ""
        yield Text(
            f"  Answer with a number{several}, or in your own words." if choices else "  Answer in words.", "dim"
        )


def typed_answer(question: QuestionView, line: str) -> AnswerOptions:
    """What was typed, as an answer. Raises `InvalidInput` for what is none."""
    typed = line.strip()
    if question.kind is QuestionKind.PERMISSION:
        word, _, reason = typed.partition(" ")
        decision = _DECISIONS.get(word.lower().strip(",:"))
        if decision is None:
            raise InvalidInput("Answer allow, session, or deny and a reason; or 1, 2, 3.")
        return {"decision": decision} | ({"reason": reason.strip()} if reason.strip() else {})  # type: ignore[return-value]  # as it is drawn
    chosen = [_chosen(question, part.strip()) for part in (typed.split(",") if question.multiple else [typed])]
    values = [value for value in chosen if value is not None]
    return {"values": values} if values and len(values) == len(chosen) else {"text": typed}


def _chosen(question: QuestionView, part: str) -> str | None:
    if part.isdecimal() and 1 <= int(part) <= len(question.options):
        return question.options[int(part) - 1].value
    same = [one.value for one in question.options if part.lower() in (one.label.lower(), one.value.lower())]
    return same[0] if same else None
