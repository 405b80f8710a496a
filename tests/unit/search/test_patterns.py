"""Patterns: what of them the index is asked, what they match, and which are refused."""

import pytest

from contextbase.errors import InvalidInput
from contextbase.search.grams import GramQuery
from contextbase.search.pattern import TextPattern
from contextbase.search.scan import ScanFile, TextScanLimits, scan_files


def shown(query: GramQuery) -> str:
    """`abc bcd (xyz | uvw)`"""
    own = sorted(gram.to_bytes(3, "big").decode("latin-1") for gram in query.grams)
    return " ".join([*own, *(f"({' | '.join(map(shown, choice))})" for choice in query.choices)])


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        (r"def\s+get_\w+", "def et_ get"),
        (r"\bfoo\b", "foo"),
        ("^foo$", "foo"),
        ("apply|create?", "(app ply ppl | cre eat rea)"),
        ("x(foo|bar)y", "(foo | bar)"),
        ("(foo|)barx", "arx bar"),
        ("abc+de", "abc cde"),
        ("abc*def", "def"),
        ("(abc)?def", "def"),
        ("(abc){0}def", "def"),
        ("(abc){2}", "abc"),
        ("x{3}yz", "xyz"),
        ("[Ff]oo", "foo"),
        ("oo[^f]oo", ""),
        ("oo[ab]oo", ""),
        ("oo[a-b]oo", ""),
        ("oo[[:alpha:]]oo", ""),
        (r"oo[\d]oo", ""),
        ("oo[]]oo", "]oo o]o oo]"),
        (r"a\.b\x63\x{64}", ".bc a.b bcd"),
        (r"\Qa.bc\E", ".bc a.b"),
        (r"\Qa.bc\E*", ""),
        (r"\Qa.bc\E+", ".bc a.b"),
        (r"oo\pLoo\p{Greek}oo", ""),
        ("a{2,x}", ",x} 2,x a{2 {2,"),
        ("(?P<name>foo)", "foo"),
        ("(?i)naïve", ""),
        ("naïve", "a\xc3\xaf na\xc3 \xafve \xc3\xafv"),
        (r"\141bc", ""),
        ("(" * 60 + "foo" + ")" * 60, ""),
    ],
)
def test_what_the_index_is_asked(source: str, asked: str) -> None:
    assert shown(TextPattern(text=source, is_expression=True).query) == asked


def test_of_a_long_literal_not_all_is_asked() -> None:
    assert 8 <= len(TextPattern(text="".join(map(str, range(300)))).query.grams) <= 16


@pytest.mark.parametrize(
    "source",
    [
        r"(a)\1",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(",
        "a)(b",
        "a**",
        "[b-a]",
        "a{2000}",
        ".{0,900}x.{0,900}",
        r"(\pL{1,9}){1,99}",
    ],
)
def test_what_RE2_does_not_know_and_what_is_too_large_is_refused(source: str) -> None:  # noqa: N802 - its name
    with pytest.raises(InvalidInput):
        TextPattern(text=source, is_expression=True)


@pytest.mark.parametrize("text", ["", "a\nb", "a\0", "\ud800", "x" * 1001], ids=lambda text: ascii(text[:8]))
def test_what_no_line_can_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        TextPattern(text=text)


def matching(text: str, source: str, **options: bool) -> list[tuple[int, tuple[tuple[int, int], ...] | None]]:
    [scan] = scan_files(
        TextPattern(text=source, **options), [ScanFile(content=text.encode())], TextScanLimits(matches=99)
    )
    return [(line.number, line.ranges) for line in scan.lines]


def test_a_match_stays_in_its_line() -> None:
    assert matching("foo\nbar", r"foo\sbar", is_expression=True) == []
    assert matching("foo\nbar", "[^x]+", is_expression=True) == [(1, ((0, 3),)), (2, ((0, 3),))]
    assert matching("foo\nbar\n", "^$", is_expression=True) == []
    assert matching("foo\n\nbar\n", "^$", is_expression=True) == [(2, ((0, 0),))]
    assert matching("\n", "^", is_expression=True) == [(1, ((0, 0),))]


def test_ranges_are_counted_in_characters() -> None:
    assert matching("日本 foo foo", "foo") == [(1, ((3, 6), (7, 10)))]


def test_literal_text_means_itself() -> None:
    assert matching("a.c abc (x", "a.c") == [(1, ((0, 3),))]
    assert matching("a.c abc (x", "(x") == [(1, ((8, 10),))]


def test_case_and_whole_words() -> None:
    assert [number for number, _ in matching("Foo\nfood\nfoo", "foo", ignore_case=True)] == [1, 2, 3]
    assert [number for number, _ in matching("Foo\nfood\nfoo", "foo", whole_word=True)] == [3]
    assert [number for number, _ in matching("Ärger", "ärger", ignore_case=True)] == [1]
    assert [number for number, _ in matching("ab\na b", "a|b", is_expression=True, whole_word=True)] == [2]


def test_a_long_line_is_shown_around_its_match() -> None:
    text = "é" * 5000 + "needle" + "x" * 5000
    [scan] = scan_files(TextPattern(text="needle"), [ScanFile(content=text.encode())], TextScanLimits(matches=9))
    [line] = scan.lines
    assert line.is_cut
    assert len(line.text) == 300
    assert line.ranges is not None
    [(start, end)] = line.ranges
    assert line.text[start:end] == "needle"


def test_what_is_no_UTF_8_is_searched_byte_by_byte() -> None:  # noqa: N802 - its name
    content = b"caf\xe9 bar\n\xff foo \xfe foo\n"
    [scan] = scan_files(TextPattern(text="foo"), [ScanFile(content=content)], TextScanLimits(matches=9))
    [line] = scan.lines
    assert (line.number, line.ranges) == (2, ((2, 5), (8, 11)))
