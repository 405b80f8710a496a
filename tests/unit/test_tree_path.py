"""TreePath: every rule, and that a name is never changed behind anyone's back."""

import string
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextbase.errors import InvalidPath
from contextbase.ids import MAX_PART_BYTES, MAX_PATH_BYTES, TreePath

NFC_NAME = "caf\u00e9.md"
NFD_NAME = "cafe\u0301.md"

# Text in which separators, dots and combining marks are frequent enough to meet each other.
paths = st.text(st.one_of(st.sampled_from("/\\.a\u0301\u00e9\x00\n"), st.characters()), max_size=40)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param("", "empty", id="nothing"),
        pytest.param("/a", "relative", id="absolute"),
        pytest.param("/workspace/a", "relative", id="absolute in the workspace"),
        pytest.param("a\\b", "separator", id="backslash"),
        pytest.param("a/\udcff", "utf8", id="undecodable byte from a disk"),
        pytest.param("a\x00b", "control", id="NUL"),
        pytest.param("a\nb", "control", id="newline"),
        pytest.param("a\x7fb", "control", id="DEL"),
        pytest.param("a\x85b", "control", id="C1 control"),
        pytest.param(NFD_NAME, "nfc", id="decomposed name"),
        pytest.param("a/" * 512 + "ab", "length", id="one byte over the longest path"),
        pytest.param("é" * 127 + "ab", "part_length", id="one byte over the longest part"),
        pytest.param("a//b", "empty_part", id="double slash"),
        pytest.param("a/", "empty_part", id="trailing slash"),
        pytest.param(".", "dots", id="dot"),
        pytest.param("./a", "dots", id="leading dot"),
        pytest.param("a/./b", "dots", id="dot inside"),
        pytest.param("..", "dots", id="dots"),
        pytest.param("a/../b", "dots", id="dots inside"),
        pytest.param(".contextbase", "reserved", id="reserved folder"),
        pytest.param(".contextbase/refused/a", "reserved", id="in the reserved folder"),
        pytest.param(".ContextBase/a", "reserved", id="reserved folder on a case-insensitive disk"),
    ],
)
def test_a_broken_rule_is_named_together_with_the_path(path: str, rule: str) -> None:
    with pytest.raises(InvalidPath) as caught:
        TreePath(path)
    assert caught.value.details["rule"] == rule
    shown = caught.value.details["path"]
    assert isinstance(shown, str)
    assert shown in caught.value.message
    if len(path) < 100:
        assert shown in (repr(path), ascii(path))


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "a/b/c.txt",
        ".hidden",
        "...",
        "a..b",
        " leading and trailing ",
        NFC_NAME,
        "日本語/メモ.md",
        "emoji 👩‍👩‍👧.png",
        'a:b*?"<>|',
        "sub/.contextbase/a",
        ".contextbase-notes",
        "x" * MAX_PART_BYTES,
        "é" * 127 + "a",
        "/".join(["abc"] * 256) + "d",
    ],
)
def test_an_ordinary_name_is_kept_as_it_is(path: str) -> None:
    assert TreePath(path) == path
    assert TreePath.parse(path) == path


def test_the_longest_path_has_exactly_the_stated_number_of_bytes() -> None:
    longest = "a/" * (MAX_PATH_BYTES // 2 - 1) + "ab"
    assert len(TreePath(longest)) == MAX_PATH_BYTES


@given(paths)
@example(NFD_NAME)
def test_building_a_path_keeps_it_or_refuses_it_but_never_changes_it(text: str) -> None:
    try:
        path = TreePath(text)
    except InvalidPath:
        return
    assert str(path) == text


@given(paths)
@example("/workspace/")
@example("/workspace//etc/passwd")
@example("./../a")
@example(".//a")
@example("\\workspace\\a")
def test_parsing_gives_a_valid_path_or_refuses_and_parses_alike_again(text: str) -> None:
    try:
        path = TreePath.parse(text)
    except InvalidPath:
        return
    assert TreePath(str(path)) == path
    assert TreePath.parse(path) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("./a", "a"),
        ("././a/b", "a/b"),
        ("a/", "a"),
        ("a//", "a"),
        ("a\\b", "a/b"),
        (".\\a\\b\\", "a/b"),
        ("/workspace/a", "a"),
        ("/workspace/./a/", "a"),
        ("\\workspace\\a\\b", "a/b"),
        ("workspace/a", "workspace/a"),
    ],
)
def test_the_edges_take_the_spellings_people_and_agents_use(text: str, path: str) -> None:
    assert TreePath.parse(text) == path


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "empty"),
        ("./", "empty"),
        ("/", "relative"),
        ("//", "relative"),
        ("/workspace", "relative"),
        ("/workspace/", "empty"),
        ("/workspace/../etc/passwd", "dots"),
        ("/workspace//etc", "relative"),
        ("/etc/passwd", "relative"),
        ("C:\\..\\a", "dots"),
        (".", "dots"),
        ("./.contextbase/a", "reserved"),
        ("/workspace/.contextbase", "reserved"),
        ("a//b", "empty_part"),
    ],
)
def test_the_edges_refuse_what_leads_elsewhere(text: str, rule: str) -> None:
    with pytest.raises(InvalidPath) as caught:
        TreePath.parse(text)
    assert caught.value.details == {"rule": rule, "path": repr(text)}


@pytest.mark.parametrize("read", [TreePath, TreePath.parse])
def test_a_decomposed_name_is_refused_not_composed(read: "type[TreePath]") -> None:
    assert unicodedata.normalize("NFC", NFD_NAME) == NFC_NAME
    with pytest.raises(InvalidPath, match="normal form C"):
        read(NFD_NAME)
    assert read(NFC_NAME).encode() == NFC_NAME.encode()


def test_a_message_shows_hostile_text_escaped_and_short() -> None:
    with pytest.raises(InvalidPath) as caught:
        TreePath("\x1b[2J" + "x" * 5000)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 250


def test_parts_name_and_parent() -> None:
    path = TreePath("a/b/c.txt")
    assert (path.parts, path.name, path.parent) == (("a", "b", "c.txt"), "c.txt", "a/b")
    assert TreePath("a").parent is None
    assert TreePath("a") / "b" == TreePath("a/b")


def test_joining_checks_the_result() -> None:
    with pytest.raises(InvalidPath):
        TreePath("a") / ".."


@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=3), min_size=1, max_size=4))
def test_a_path_is_below_each_of_its_ancestors_and_not_below_itself(parts: list[str]) -> None:
    path = TreePath("/".join(parts))
    ancestor = path.parent
    while ancestor is not None:
        assert path.is_below(ancestor)
        ancestor = ancestor.parent
    assert not path.is_below(path)


def test_a_sibling_with_the_same_beginning_is_not_below() -> None:
    assert not TreePath("notes-2/a").is_below("notes")
