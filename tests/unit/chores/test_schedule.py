"""When a chore runs next, after a success and after failures."""

from datetime import timedelta

import pytest

from contextbase.chores.schedule import next_run_in


def middle(low: float, high: float) -> float:
    return (low + high) / 2


@pytest.mark.parametrize(
    ("every", "waits"),
    [
        (timedelta(seconds=2), [2, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (timedelta(minutes=5), [300, 60, 120, 240, 300, 300]),
        (timedelta(hours=1), [3600, 60, 120, 240, 480, 960, 1920, 3600, 3600]),
    ],
)
def test_failures_in_a_row_are_tried_again_ever_later(every: timedelta, waits: list[int]) -> None:
    found = [next_run_in(every, failures, spread=middle) for failures in range(len(waits))]
    assert found == [timedelta(seconds=wait) for wait in waits]


def test_a_chore_that_fails_for_years_still_has_a_next_time() -> None:
    assert next_run_in(timedelta(seconds=2), 10**6, spread=middle) == timedelta(minutes=5)


def test_servers_that_start_together_do_not_run_together() -> None:
    waits = {next_run_in(timedelta(hours=1), 0) for _ in range(20)}
    assert len(waits) > 1
    assert all(timedelta(minutes=54) <= wait <= timedelta(minutes=66) for wait in waits)
