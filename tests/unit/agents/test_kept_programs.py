import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from contextbase.agents.kept_programs import ProgramKeeper, ProgramStart
from contextbase.agents.program import AgentProgram

PARROT = "import sys\nfor line in sys.stdin:\n    print(line, end='', flush=True)\n"
HOUR = 3600.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def answers(program: AgentProgram) -> bool:
    return await program.answered({"are": "you there"}, lambda line: line == {"are": "you there"})


@pytest.fixture
def start(tmp_path: Path) -> ProgramStart:
    return ProgramStart(
        program=Path(sys.executable),
        arguments=("-c", PARROT),
        cwd=tmp_path,
        environment={"RUN": "1"},
        memory=tmp_path / "memory",
        remembers=("*.jsonl",),
        answers=answers,
    )


async def turn(
    keeper: ProgramKeeper, start: ProgramStart, resume: str | None = "c1", *, last_line: tuple[str, ...] = ()
) -> int:
    """The process that takes it."""
    async with keeper.program(start, conversation=resume, seconds=HOUR) as loan:
        assert await answers(loan.program)
        loan.keep("c1", last_line=last_line)
        return loan.program.process_id


async def test_a_program_is_used_again_only_for_what_it_was_started_for(start: ProgramStart) -> None:
    keeper = ProgramKeeper(overlooked={"RUN"})
    first = await turn(keeper, start, None)
    assert keeper.process_id == first
    assert await turn(keeper, start) == first
    assert await turn(keeper, replace(start, environment={"RUN": "2"}, resuming=("--resume",))) == first
    others = [
        (start, "c2"),
        (start, None),
        (replace(start, told="otherwise"), "c1"),
        (replace(start, environment={"MORE": "1"}), "c1"),
        (replace(start, arguments=("-c", PARROT, "more")), "c1"),
    ]
    seen = {first}
    for other, resume in others:
        process = await turn(keeper, other, resume)
        assert process not in seen, (other, resume)
        seen.add(process)
    start.memory.mkdir()
    (start.memory / "c1.jsonl").write_text("somebody else's\n")
    assert await turn(keeper, others[-1][0]) not in seen
    await keeper.end()
    assert keeper.process_id is None


async def test_a_program_sleeps_until_its_time_is_up(start: ProgramStart) -> None:
    clock = Clock()
    keeper = ProgramKeeper(clock=clock)
    process = await turn(keeper, start)
    clock.now = HOUR - 1
    await keeper.end_idle()
    assert await turn(keeper, start) == process == keeper.process_id
    clock.now = 2 * HOUR - 2  # an hour from the last turn, less a second
    await keeper.end_idle()
    assert keeper.process_id == process
    clock.now = 2 * HOUR - 1
    await keeper.end_idle()
    assert keeper.process_id is None
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_program_that_is_woken_as_its_time_ends_is_whole_or_new(start: ProgramStart) -> None:
    clock = Clock()
    keeper = ProgramKeeper(clock=clock)
    await turn(keeper, start)

    async def answers_late(program: AgentProgram) -> bool:
        found = await answers(program)
        clock.now = 2 * HOUR
        await keeper.end_idle()
        return found

    async with keeper.program(replace(start, answers=answers_late), conversation="c1", seconds=HOUR) as loan:
        assert await answers(loan.program)


async def test_a_program_whose_waking_is_given_up_does_not_stay_awake(start: ProgramStart) -> None:
    keeper = ProgramKeeper()
    process = await turn(keeper, start)
    asked = asyncio.Event()

    async def never_answers(_: AgentProgram) -> bool:
        asked.set()
        await asyncio.sleep(HOUR)
        return True

    waking = asyncio.create_task(turn(keeper, replace(start, answers=never_answers)))
    await asked.wait()
    waking.cancel()
    await asyncio.wait({waking})
    assert keeper.process_id is None
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_program_that_has_not_written_its_turn_or_that_fails_is_not_kept(
    start: ProgramStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextbase.agents.kept_programs._WRITING_SECONDS", 0.0)
    keeper = ProgramKeeper()
    start.memory.mkdir()
    memory = start.memory / "c1.jsonl"
    for text in ("", '{"done": "turn-0"}\n', '{"done": "turn-1"'):
        memory.write_text(text)
        await turn(keeper, start, last_line=("done", "turn-1"))
        assert keeper.process_id is None, text
    memory.write_text('{"done": "turn-1"}\n')
    await turn(keeper, start, last_line=("done", "turn-1"))
    assert keeper.process_id is not None
    with suppress(ZeroDivisionError):
        async with keeper.program(start, conversation="c1", seconds=HOUR) as loan:
            loan.keep("c1")
            raise ZeroDivisionError
    assert keeper.process_id is None
    async with keeper.program(start, conversation="c1", seconds=0) as loan:
        loan.keep("c1")
    assert keeper.process_id is None
