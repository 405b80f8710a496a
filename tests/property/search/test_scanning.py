"""Pages of a scan put together are the scan of everything; and what a pattern matches, the index lets through."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from contextbase.errors import InvalidInput
from contextbase.search.grams import grams_of
from contextbase.search.pattern import TextPattern
from contextbase.search.scan import FileScan, ScanFile, TextScanLimits, scan_files
from contextbase.search.shown_line import FoundLine

LINES = st.lists(st.sampled_from(["foo", "bar", "foo bar", "", "x", "ab" * 40, "naïve 日本"]), max_size=30)
TEXTS = st.tuples(LINES.map("\n".join), st.sampled_from(["", "\n"])).map(lambda parts: "".join(parts).encode())


@given(text=TEXTS, context=st.integers(0, 3), room=st.integers(1, 4), per_file=st.sampled_from([None, 1, 2, 5]))
def test_pages_put_together_are_what_grep_would_show(
    text: bytes, context: int, room: int, per_file: int | None
) -> None:
    shown: list[FoundLine] = []
    file = ScanFile(content=text)
    for _ in range(100):
        limits = TextScanLimits(matches=room, per_file=per_file, context=context)
        [part] = scan_files(TextPattern(text="foo"), [file], limits)
        shown += part.lines
        assert part.matches <= room
        if part.through_line is None:
            break
        file = _rest(file, part)
    lines = text.decode().removesuffix("\n").split("\n") if text else []
    matching = [number for number, line in enumerate(lines, 1) if "foo" in line]
    end = len(lines) if per_file is None or len(matching) <= per_file else matching[per_file] - 1
    near = {number + distance for number in matching[:per_file] for distance in range(-context, context + 1)}
    assert [line.number for line in shown] == [number for number in range(1, end + 1) if number in near]
    assert [line.number for line in shown if line.ranges is not None] == matching[:per_file]
    assert [line.text for line in shown] == [lines[line.number - 1] for line in shown]


@given(texts=st.lists(TEXTS, max_size=5))
def test_a_scan_without_time_gets_on_all_the_same(texts: list[bytes]) -> None:
    pattern = TextPattern(text="foo")
    long = [text + b"\n" + b"nothing here\n" * 12_000 + text for text in texts]  # several windows each
    files = [ScanFile(content=text) for text in long]
    [*whole] = scan_files(pattern, files, TextScanLimits(matches=1000))
    found: list[list[int]] = [[] for _ in files]
    number, file = 0, files[0] if files else None
    for _ in range(1000):
        if file is None:
            break
        [part] = scan_files(pattern, [file], TextScanLimits(matches=1000, seconds=0))
        found[number] += [line.number for line in part.lines]
        if part.through_line is not None:
            assert part.through_line > file.after_line
            file = _rest(file, part)
        else:
            number += 1
            file = files[number] if number < len(files) else None
    assert found == [[line.number for line in scan.lines] for scan in whole]


def _rest(file: ScanFile, part: FileScan) -> ScanFile:
    return ScanFile(
        content=file.content,
        after_line=part.through_line or 0,
        shown_line=part.shown_line,
        matches_before=file.matches_before + part.matches,
    )


# Pieces of RE2's syntax, each with something that it matches: those that the reader of patterns knows, and others.
ATOMS = st.sampled_from(
    [
        *((text, text) for text in ("foo", "F", "ba", "k", "s", "é", "日本", "1")),
        *((".", "x"), (r"\d", "1"), (r"\w", "f"), (r"\s", " "), (r"\pL", "É"), (r"\p{Greek}", "λ"), (r"\C", "o")),
        *((r"\x66", "f"), (r"\x{6f}", "o"), (r"\.", "."), (r"\Qa.b\E", "a.b"), (r"\b", ""), ("^", ""), ("$", "")),
        *(
            ("[fF]", "F"),
            ("[^f]", "g"),
            ("[a-c]", "b"),
            ("[[:alpha:]]", "z"),
            (r"[\d]", "1"),
            ("[]x]", "]"),
            ("[K]", "K"),
        ),
        *((r"[k\-s]", "-"), ("[^x]", "λ"), ("[a-b]", "a"), (r"\t", "\t"), ("a{", "a{")),
    ]
)


def _larger(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    opening = st.sampled_from(["(", "(?:", "(?i:", "(?P<n>", "(?s-i:"])
    repeats = st.sampled_from(
        [("*", 0), ("*", 2), ("+", 1), ("?", 0), ("{2}", 2), ("{0,2}", 0), ("{1,}", 3), ("+?", 2)]
    )
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(
            lambda parts: ("".join(p[0] for p in parts), "".join(p[1] for p in parts))
        ),
        st.tuples(opening, inner).map(lambda parts: (f"{parts[0]}{parts[1][0]})", parts[1][1])),
        st.tuples(inner, inner, st.booleans()).map(lambda two: (f"(?:{two[0][0]}|{two[1][0]})", two[two[2]][1])),
        st.tuples(inner, repeats).map(lambda parts: (f"(?:{parts[0][0]}){parts[1][0]}", parts[0][1] * parts[1][1])),
        st.tuples(ATOMS, repeats).map(lambda parts: (f"{parts[0][0]}{parts[1][0]}", parts[0][1] * parts[1][1])),
    )


EXPRESSIONS = st.recursive(ATOMS, _larger, max_leaves=8)
PIECES = ["foo", "FOO", "f", "o", "ba", "BA", "k", "\u212a", "s", "\u017f", "é", "É", "日本", "a.b", "1", " ", "x"]
HAYSTACKS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
SPELLINGS = st.sampled_from([str, str.upper, lambda text: text.replace("k", "\u212a").replace("s", "\u017f")])


@given(expression=EXPRESSIONS, around=st.tuples(HAYSTACKS, HAYSTACKS), spelled=SPELLINGS, ignore_case=st.booleans())
def test_the_index_lets_through_every_text_that_matches(
    expression: tuple[str, str], around: tuple[str, str], spelled: Callable[[str], str], ignore_case: bool
) -> None:
    source, sample = expression
    text = around[0] + spelled(sample) + around[1]
    _assert_let_through(source, text, is_expression=True, ignore_case=ignore_case)


@given(literal=HAYSTACKS, text=HAYSTACKS, ignore_case=st.booleans())
def test_the_index_lets_through_every_text_that_has_a_literal(literal: str, text: str, ignore_case: bool) -> None:
    _assert_let_through(literal, text + literal, is_expression=False, ignore_case=ignore_case)
    _assert_let_through(literal, text, is_expression=False, ignore_case=ignore_case)


def _assert_let_through(source: str, text: str, **options: bool) -> None:
    try:
        pattern = TextPattern(text=source, **options)
    except InvalidInput:
        return  # RE2 refuses it
    [scan] = scan_files(pattern, [ScanFile(content=text.encode())], TextScanLimits(matches=1))
    if scan.matches and not pattern.query.tells_nothing:
        texts_with = dict.fromkeys(grams_of(text.encode()), (7,))
        assert pattern.query.passing(texts_with) == {7}
        weights = {gram: gram % 5 for gram in texts_with}
        assert pattern.query.narrowed(weights).passing(texts_with) == {7}
