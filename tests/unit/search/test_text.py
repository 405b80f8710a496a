"""What of a content is text."""

import pytest

from contextbase.search.text import text_of

CHINESE = "发票的总金额是 100 元。\n第二行。\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_text_is_known_by_its_encoding(encoding: str) -> None:
    assert text_of(CHINESE.encode(encoding)) == CHINESE.encode()


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_wide_text_needs_its_mark(mark: str) -> None:
    plain = "plain text".encode(mark)
    assert text_of(plain) is None
    assert text_of("\ufeff".encode(mark) + plain) == b"plain text"


def test_what_has_a_NUL_near_its_start_is_binary() -> None:  # noqa: N802 - its name
    assert text_of(b"GIF89a\0") is None
    assert text_of(b"x" * 8000 + b"\0") is not None


@pytest.mark.parametrize(
    "content",
    ["café résumé déjà vu, né à Århus".encode("latin-1"), b"na\xefve r\xe9sum\xe9", b"\xff\xff\xff", b"caf\xe9s"],
)
def test_other_bytes_are_left_as_they_are(content: bytes) -> None:
    assert text_of(content) == content


def test_the_empty_file_is_text() -> None:
    assert text_of(b"") == b""
