"""Agent programs and a model that is busy, refuses, or costs more than there is."""

from uuid import UUID

from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import PROGRAMS, Program, of_type, outcome
from tests.support.executor_site import attached, gateway_handler
from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, script

from contextbase.agents.registry import default_model
from contextbase.models.dialects import GatewayError, GatewayProblem
from contextbase.models.memory import MemoryLedger
from contextbase.models.model import Dialect, ModelContext

KEPT = {"limits": {"keep_seconds": 3600}}  # the next turn need not start the program
FEW = 6
"""Requests: some programs also ask for a title, or try to shorten the conversation. None of them tries for ever."""


@in_sandboxes("site", slow_in="docker")
async def test_it_goes_on_after_the_model_was_busy_and_says_when_the_model_refuses(
    site: Site, program: Program
) -> None:
    busy = script({"rate_limit": 0.2}, {"text": "Late, but here."})
    refused = script({"error": {"status": 400, "type": "invalid_request_error", "message": "This is too much."}})
    model = RecordedModel()
    async with attached(site, {"model": gateway_handler(model)}, **program.shown()) as there:
        events = await there.run(program.run(busy, **KEPT))
        assert outcome(events) == "completed", events
        assert len(model.requests) <= FEW  # the gateway waits as it is told; the program does not ask again and again
        assert [data["text"] for data in of_type(events, "message.done")] == ["Late, but here."]
        later = await there.run(program.run(refused, resume=of_type(events, "run.finished")[0]["sdk_session_id"]))
        assert outcome(later) == "model_error", later
        assert "This is too much." in of_type(later, "run.error")[0]["message"]
        assert not of_type(later, "run.error")[0]["retryable"]


async def test_opencode_speaks_with_each_model_in_the_dialect_of_its_maker(one_site: Site) -> None:
    model, program = RecordedModel(), PROGRAMS["opencode"]
    async with attached(one_site, {"model": gateway_handler(model)}, **program.shown()) as there:
        events = await there.run(program.run(script({"text": "Here I am."}), model="claude-sonnet-4-5"))
    assert outcome(events) == "completed", events
    assert {request.dialect for request in model.requests} == {Dialect.MESSAGES}


def test_sessions_of_a_program_that_knows_its_models_by_name_get_one_it_knows() -> None:
    assert default_model("codex-cli") == "gpt-5.5"
    assert default_model("claude") is None  # as the settings say
    assert default_model("nobody") is None


OVERFLOWS = {
    "claude": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    "codex": {"type": "context_length_exceeded", "message": "Your input exceeds the context window of this model."},
    "opencode": {"type": "context_length_exceeded", "message": "This model's maximum context length is 200000 tokens."},
}


class EndingBudget(MemoryLedger):
    """As the real one, whose budget is used up at some time."""

    has_ended = False
    refused = 0

    async def reserve(self, context: ModelContext, request_id: UUID, amount: int) -> None:
        if self.has_ended:
            self.refused += 1
            raise GatewayError(GatewayProblem.BUDGET_EXHAUSTED, "The model budget leaves no room for this request.")
        await super().reserve(context, request_id, amount)


@in_sandboxes("site")
async def test_an_end_of_its_budget_or_its_context_ends_the_turn_at_once(site: Site, program: Program) -> None:
    model, ledger = RecordedModel(), EndingBudget()
    overflow = script({"error": {"status": 400, **OVERFLOWS[program.name]}})
    async with attached(site, {"model": gateway_handler(model, ledger)}, **program.shown()) as there:
        too_long = await there.run(program.run(overflow))
        assert outcome(too_long) == "context_overflow", too_long
        assert len(model.requests) <= FEW
        ledger.has_ended = True
        events = await there.run(program.run("Do it."))
        assert outcome(events) == "budget_exhausted", events
        assert 0 < ledger.refused <= FEW
        assert not of_type(events, "run.error")[0]["retryable"]
