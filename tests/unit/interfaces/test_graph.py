"""The lanes beside a log."""

from contextbase.interfaces.cli.graph import Forked, draw


def picture(*commits: tuple[int, tuple[int, ...]]) -> list[str]:
    rows = []
    for drawn in draw([Forked(seq=seq, forks=forks) for seq, forks in commits]):
        rows += [*drawn.above, drawn.commit, *drawn.below]
    return rows


def test_commits_one_after_the_other_are_one_lane() -> None:
    assert picture((3, ()), (2, ()), (1, ())) == ["*", "*", "*"]
    assert draw([]) == []


def test_a_writer_who_was_overtaken_has_a_lane_from_what_it_saw_to_where_it_was_joined() -> None:
    assert picture((4, (1,)), (3, ()), (2, ()), (1, ())) == ["*", "|\\", "* |", "* |", "|/", "*"]


def test_lanes_stand_side_by_side_and_end_one_by_one() -> None:
    expected = ["*", "|\\", "* |", "|\\ \\", "* | |", "|_|/", "* |", "|/", "*"]
    assert picture((5, (2,)), (4, (1,)), (3, ()), (2, ()), (1, ())) == expected
    assert picture((4, (3, 2)), (3, ()), (2, ()), (1, ())) == ["*", "|\\", "|\\ \\", "|/ /", "* |", "|/", "*", "*"]


def test_a_fork_from_a_commit_that_is_not_listed_ends_at_the_next_older_one_or_at_the_bottom() -> None:
    assert picture((9, (6,)), (7, ()), (5, ())) == ["*", "|\\", "* |", "|/", "*"]
    assert picture((9, (1,)), (7, ()), (5, ())) == ["*", "|\\", "* |", "* |"]


def test_what_is_said_about_a_commit_stands_beside_the_lanes_that_go_on() -> None:
    drawn = draw([Forked(seq=3, forks=(1,)), Forked(seq=2), Forked(seq=1)])
    assert [each.margin for each in drawn] == ["| |", "| |", ""]
