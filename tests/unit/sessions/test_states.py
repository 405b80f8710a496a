"""Which state of a run may follow which."""

from itertools import pairwise

import pytest
from tests.support.session_world import WAY

from contextbase.errors import Conflict
from contextbase.sessions.states import ACTIVE, ENDED, STARTING, RunState, check_move, may_follow


def test_a_run_goes_its_way_step_by_step() -> None:
    assert all(may_follow(before, after) for before, after in pairwise((RunState.QUEUED, *WAY)))


def test_an_end_is_the_end() -> None:
    assert not any(may_follow(before, after) for before in ENDED for after in RunState)


def test_a_run_can_be_given_back_fail_and_be_canceled_at_any_time_before_its_end() -> None:
    for before in ACTIVE:
        assert may_follow(before, RunState.QUEUED)
    for before in ACTIVE | {RunState.QUEUED}:
        assert may_follow(before, RunState.FAILED)
        assert may_follow(before, RunState.CANCELED)


def test_nothing_succeeds_before_its_work_is_stored_and_landed() -> None:
    assert [before for before in RunState if may_follow(before, RunState.SUCCEEDED)] == [RunState.EXPORTED]
    assert not any(may_follow(before, RunState.EXPORTED) for before in STARTING | {RunState.RUNNING})


def test_a_move_that_no_run_makes_is_refused() -> None:
    with pytest.raises(Conflict):
        check_move(RunState.QUEUED, RunState.RUNNING)
