import pytest

from contextbase.merge.sniff import FileType, Spelling, decode, encode, file_type, is_binary


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b/package.json", FileType.JSON),
        ("tsconfig.JSON", FileType.JSON),
        (".prettierrc", FileType.JSON),
        ("log.jsonl", FileType.JSON_LINES),
        ("n.ipynb", FileType.NOTEBOOK),
        (".github/workflows/ci.yml", FileType.YAML),
        ("Cargo.lock", FileType.TOML),
        ("README.md", FileType.MARKDOWN),
        ("docs/CHANGELOG.md", FileType.CHANGELOG),
        ("CHANGES", FileType.CHANGELOG),
        ("changes.json", FileType.JSON),
        (".env.local", FileType.INI),
        ("dev-requirements.txt", FileType.LINE_SET),
        ("notes.txt", FileType.TEXT),
        ("Makefile", FileType.TEXT),
        ("people.csv", FileType.TABLE),
    ],
)
def test_the_name_tells_the_type(path: str, expected: FileType) -> None:
    assert file_type(path) is expected


def test_a_name_that_says_nothing_is_told_by_its_first_byte() -> None:
    assert file_type("settings", b'  {"a": 1}') is FileType.JSON
    assert file_type("settings", b"plain") is FileType.TEXT


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a\nb\n",
        b"a\r\nb\r\n",
        b"a\r\nb\nc",
        b"a\rb",
        b"\xef\xbb\xbfa\n",
        "ä\nb".encode("utf-16"),
        "ä\r\n".encode("utf-32"),
    ],
)
def test_decoding_and_encoding_gives_the_bytes_back(content: bytes) -> None:
    text, spelling = decode(content)
    assert text.endswith("\n") or not text
    assert encode(text, spelling) == content


def test_mixed_line_ends_stay_in_the_text() -> None:
    assert decode(b"a\r\nb\n") == ("a\r\nb\n", Spelling())


def test_a_nul_byte_means_binary_except_in_marked_utf_16() -> None:
    assert is_binary(b"a\0b")
    assert not is_binary("ab".encode("utf-16"))
    assert not is_binary(b"a" * 9000 + b"\0")
