"""The queue of runs on a real database does, step by step, what a small model of it does."""

from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.session_world import MACHINES, SessionWorld

from contextbase.db.database import Database
from contextbase.errors import LeaseLost
from contextbase.identity.model import Caller
from contextbase.sessions.model import AgentSession, QueueState, RunId
from contextbase.sessions.queue import QueueLimits

SESSIONS = 3
LIMITS = QueueLimits(most_running=3, most_starting=3)

# Each step takes a number that chooses a session, a machine or a run, whatever there is then.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "send",
                "send",
                "send",
                "claim",
                "claim",
                "fail",
                "release",
                "park",
                "unpark",
                "cancel",
                "expire",
                "late",
                "beat",
            ]
        ),
        st.integers(0, 11),
    ),
    min_size=15,
    max_size=60,
)


@dataclass
class Queued:
    """A run that has not ended, as the model has it."""

    id: RunId
    session: int
    state: QueueState
    attempt: int = 0
    failures: int = 0
    machine: str | None = None
    is_canceled: bool = False


@dataclass
class Model:
    runs: list[Queued] = field(default_factory=list)  # in the order of their turns, for each owner

    def of(self, *states: QueueState) -> list[Queued]:
        return [run for run in self.runs if run.state in states]

    def add(self, run_id: RunId, session: int) -> None:
        is_first = all(run.session != session for run in self.runs)
        self.runs.append(Queued(run_id, session, QueueState.READY if is_first else QueueState.BEHIND))

    def end(self, run: Queued) -> None:
        self.runs.remove(run)
        following = next((other for other in self.runs if other.session == run.session), None)
        if following is not None and run.state is not QueueState.BEHIND:
            following.state = QueueState.READY

    def give_back(self, run: Queued) -> None:
        """After an attempt that came to nothing."""
        run.failures += 1
        if run.is_canceled or run.failures >= LIMITS.most_attempts:
            self.end(run)
        else:
            run.state, run.machine = QueueState.READY, None


@dataclass
class Driven:
    """The queue and its model, in step."""

    world: SessionWorld
    owners: list[Caller]
    sessions: list[AgentSession]
    model: Model = field(default_factory=Model)

    async def step(self, action: str, number: int) -> None:
        await getattr(self, action)(number)

    async def send(self, number: int) -> None:
        session = number % SESSIONS
        run = await self.world.send(self.sessions[session], who=self.owner(session))
        self.model.add(run.id, session)

    async def claim(self, number: int) -> None:
        machine, limit = MACHINES[number % 3], 1 + number // 4
        ready = self.model.of(QueueState.READY)
        held = sum(run.machine == machine for run in self.model.runs)
        claimed = await self.world.queue.claim(machine, limit=limit)
        assert len(claimed) == min(limit, len(ready), LIMITS.most_running - held)
        ids = [one.run.id for one in claimed]
        for owner in range(2):
            mine = [run.id for run in ready if run.session % 2 == owner]
            taken = [run_id for run_id in ids if run_id in mine]
            assert taken == mine[: len(taken)], "an owner's runs go in the order in which they came"
        for one in claimed:
            run = self.known(one.run.id)
            run.state, run.machine, run.attempt = QueueState.CLAIMED, machine, run.attempt + 1
            assert one.run.attempt == run.attempt

    async def fail(self, number: int) -> None:
        if run := self.chosen(number, QueueState.CLAIMED):
            await self.world.queue.fail(run.id, run.attempt, reason="test", message="It failed.")
            self.model.end(run)

    async def release(self, number: int) -> None:
        if run := self.chosen(number, QueueState.CLAIMED):
            await self.world.queue.release(run.id, run.attempt, reason="test", message="Again.")
            self.model.give_back(run)

    async def park(self, number: int) -> None:
        if run := self.chosen(number, QueueState.CLAIMED):
            await self.world.queue.park(run.id, run.attempt, reason="human", message="It waits.")
            run.state, run.machine = QueueState.PARKED, None

    async def unpark(self, number: int) -> None:
        if run := self.chosen(number, *QueueState):
            is_parked = run.state is QueueState.PARKED
            assert await self.world.queue.unpark(run.id) is is_parked
            run.state = QueueState.READY if is_parked else run.state

    async def cancel(self, number: int) -> None:
        if run := self.chosen(number, *QueueState):
            await self.world.sessions.cancel(self.owner(run.session), run.id)
            run.is_canceled = True
            if run.machine is None:
                self.model.end(run)

    async def expire(self, number: int) -> None:
        del number
        lost = self.model.of(QueueState.CLAIMED)
        assert await self.world.expire_leases() == len(lost)
        for run in lost:
            self.model.give_back(run)

    async def late(self, number: int) -> None:
        """A machine that lost a run, or was never given it, changes nothing."""
        if run := self.chosen(number, *QueueState):
            attempt = run.attempt - 1 if run.state is QueueState.CLAIMED else run.attempt
            for change in (self.world.queue.fail, self.world.queue.release, self.world.queue.park):
                try:
                    await change(run.id, attempt, reason="late", message="Too late.")
                except LeaseLost:
                    continue
                raise AssertionError("it was changed")

    async def beat(self, number: int) -> None:
        machine = MACHINES[number % 3]
        known = {run.id: run.attempt for run in self.model.runs}
        mine = {run.id: run.is_canceled for run in self.model.runs if run.machine == machine}
        assert await self.world.queue.beat(machine, known) == mine

    async def check(self) -> None:
        async with self.world.database.connection() as connection:
            rows = await connection.fetch("SELECT run_id, state, claimed_by FROM run_queue")
        found = {row["run_id"]: (row["state"], row["claimed_by"]) for row in rows}
        assert found == {run.id: (run.state, run.machine) for run in self.model.runs}

    def chosen(self, number: int, *states: QueueState) -> Queued | None:
        runs = self.model.of(*states)
        return runs[number % len(runs)] if runs else None

    def known(self, run_id: RunId) -> Queued:
        return next(run for run in self.model.runs if run.id == run_id)

    def owner(self, session: int) -> Caller:
        return self.owners[session % 2]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_the_queue_does_what_its_model_does(
    embedded_database: Database, tmp_path: Path, steps: list[tuple[str, int]]
) -> None:
    async with SessionWorld.opened(embedded_database, tmp_path, LIMITS) as world:
        async with embedded_database.connection() as connection:
            await connection.execute("TRUNCATE run_queue")  # of the example before
        owners = [await world.person("ann"), await world.person("ben")]
        sessions = [await world.session(owners[number % 2]) for number in range(SESSIONS)]
        driven = Driven(world, owners, sessions)
        for action, number in steps:
            await driven.step(action, number)
            await driven.check()
