import random

from contextbase.merge.lines import conflicting_pieces, merge_lines, merge_or_contest
from contextbase.merge.model import Sides


def test_agreed_text_and_contested_stretches_make_up_the_whole() -> None:
    pieces = conflicting_pieces(b"a\nb\nc\nd", b"a\nX\nc\nd\ne", b"z\na\nY\nc\nd\nf")
    assert pieces == [b"z\na\n", Sides(b"b\n", b"X\n", b"Y\n"), b"c\nd\n", Sides(b"d", b"e", b"f")]


def test_the_sides_are_contested_only_where_git_has_a_conflict() -> None:
    contested = merge_or_contest(b"a\nb\nc\nd\ne", b"A\nb\nc\nX\ne", b"a\nB\nc\nY\ne")
    assert contested == [b"", Sides(b"a\nb\n", b"A\nb\n", b"a\nB\n"), b"c\n", Sides(b"d\n", b"X\n", b"Y\n"), b"e"]
    contested = merge_or_contest(b"a\nb\nc\nd\ne", b"A\nb\nc\nX\ne", b"a\nb\nc\nY\ne")
    assert contested == [b"A\nb\nc\n", Sides(b"d\n", b"X\n", b"Y\n"), b"e"]
    assert merge_or_contest(b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n") == b"A\nb\nC\n"


def test_text_that_looks_like_markers_is_text() -> None:
    line = b"<" * 40 + b"\n"
    assert conflicting_pieces(line + b"a\n", line + b"b\n", line + b"c\n") == [
        line,
        Sides(b"a\n", b"b\n", b"c\n"),
    ]


def test_a_large_text_is_cut_at_lines_and_loses_nothing() -> None:
    chance = random.Random(1)
    lines = [f"line {number} {chance.random()}\n".encode() for number in range(60_000)]
    ours, theirs = list(lines), list(lines)
    ours[30_000], theirs[30_000] = b"ours\n", b"theirs\n"
    ours[31_000] = b"ours alone\n"
    sides = [b"".join(side) for side in (lines, ours, theirs)]
    assert merge_lines(*sides) is None
    pieces = conflicting_pieces(*sides)
    assert [piece for piece in pieces if isinstance(piece, Sides)] == [Sides(lines[30_000], b"ours\n", b"theirs\n")]
    assert b"".join(piece if isinstance(piece, bytes) else piece.ours for piece in pieces) == sides[1]
