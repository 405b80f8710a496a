"""Slices of a file, joined, are the file: for every charset, every offset and every length."""

import asyncio
import base64
import tracemalloc
from collections.abc import AsyncGenerator, Hashable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextbase.files import text_index
from contextbase.files.slices import MOST_AT_ONCE, FileSlice, SliceEncoding, SliceReader
from contextbase.files.text_index import Charset

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=200)
CHINESE = st.text(st.sampled_from("中文字符测试😀ab \n"), max_size=200)


@dataclass
class Bytes:
    """A file in memory that gives its bytes in pieces of the same size."""

    body: bytes
    piece: int = 7
    identity: Hashable | None = None
    given: int = field(default=0)

    @property
    def size(self) -> int:
        return len(self.body)

    async def stream(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        for offset in range(start, end, self.piece):
            piece = self.body[offset : min(offset + self.piece, end)]
            self.given += len(piece)
            yield piece


def read_all(body: bytes, *, length: int, piece: int = 7) -> list[FileSlice]:
    async def slices() -> list[FileSlice]:
        reader, content, found = SliceReader(), Bytes(body, piece=piece, identity=body), list[FileSlice]()
        while not found or found[-1].start + found[-1].read_length < found[-1].total:
            offset = found[-1].start + found[-1].read_length if found else 0
            found.append(await reader.read(content, offset=offset, length=length))
            assert found[-1].read_length or not found[-1].total
        return found

    return asyncio.run(slices())


def joined(slices: list[FileSlice]) -> bytes:
    charset = slices[0].charset
    if charset is None:
        assert all(one.encoding is SliceEncoding.BASE64 for one in slices)
        return b"".join(base64.b64decode(one.content) for one in slices)
    assert all(one.encoding is SliceEncoding.TEXT and one.charset is charset for one in slices)
    return charset.bytes_of("".join(one.content for one in slices))


@given(text=TEXT, charset=st.sampled_from(Charset), length=st.integers(1, 300), piece=st.integers(1, 64))
@example(text="\ufeff", charset=Charset.UTF_8, length=1, piece=1)
@example(text="", charset=Charset.UTF_16_BIG, length=1, piece=1)
def test_slices_joined_are_the_text(text: str, charset: Charset, length: int, piece: int) -> None:
    body = charset.bytes_of(text)
    slices = read_all(body, length=length, piece=piece)
    assert joined(slices) == body
    assert all(one.read_length <= length for one in slices)
    if slices[0].charset is charset:
        assert slices[0].total == len(text)


@given(text=CHINESE, length=st.integers(1, 50), piece=st.integers(1, 64))
def test_chinese_text_in_gb18030_is_text(text: str, length: int, piece: int) -> None:
    body = text.encode("gb18030")
    slices = read_all(body, length=length, piece=piece)
    assert "".join(one.content for one in slices) == text
    assert slices[0].charset is (Charset.UTF_8 if text.isascii() else Charset.GB18030)


@given(body=st.binary(max_size=300), length=st.integers(1, 300), piece=st.integers(1, 64))
@example(body=b"caf\xe9 d\xe9j\xe0 vu", length=300, piece=64)
@example(body=b"\xff\xfe\x00\xd8", length=1, piece=1)
@example(body=b"\xff\xfea", length=1, piece=1)
@example(body=b"\xef\xbb\xbf\xff", length=1, piece=1)
@example(body=b"\xef\xbb", length=1, piece=1)
@example(body=b"a\x00b", length=1, piece=1)
def test_slices_joined_are_the_file_whatever_it_holds(body: bytes, length: int, piece: int) -> None:
    assert joined(read_all(body, length=length, piece=piece)) == body


@given(text=TEXT, charset=st.sampled_from(Charset), step=st.integers(1, 40), data=st.data())
def test_every_offset_gives_the_characters_from_there(
    text: str, charset: Charset, step: int, data: st.DataObject
) -> None:
    """With checkpoints in short distances, as a huge file has them in long ones."""
    body = charset.bytes_of(text)
    offset = data.draw(st.integers(0, len(text) + 3))
    length = data.draw(st.integers(1, 50))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_index, "STEP", step)
        found = asyncio.run(SliceReader().read(Bytes(body), offset=offset, length=length))
    if found.encoding is SliceEncoding.TEXT and found.charset is charset:
        assert found.content == text[offset : offset + length]
        assert (found.start, found.total) == (min(offset, len(text)), len(text))


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (b"", Charset.UTF_8),
        (b"plain", Charset.UTF_8),
        (b"\xef\xbb\xbfmarked", Charset.UTF_8_MARKED),
        ("中文".encode("utf-16"), Charset.UTF_16_LITTLE),
        (b"\xfe\xff" + "中文".encode("utf-16-be"), Charset.UTF_16_BIG),
        ("中文".encode("gb18030"), Charset.GB18030),
        (b"a" * 70_000 + "中文".encode("gb18030"), Charset.GB18030),
        (b"a" * 70_000 + b"\xe9t\xe9 d\xe9j\xe0", None),
        (b"\x89PNG\r\n\x1a\n\x00", None),
        (b"caf\xe9", None),
        (b"d\xe9j\xe0vu", None),
        (b"text, then\x00not", None),
        (b"text" * 50_000 + b"\x00", None),
    ],
    ids=lambda value: f"{value[:20]!r} {len(value)}" if isinstance(value, bytes) else str(value),
)
def test_the_charset_is_found_from_the_bytes(body: bytes, charset: Charset | None) -> None:
    assert asyncio.run(SliceReader().read(Bytes(body, piece=1 << 20))).charset is charset


def test_no_slice_is_longer_than_5000() -> None:
    for body in ("字" * 6000).encode(), bytes(range(256)) * 40:
        found = asyncio.run(SliceReader().read(Bytes(body, piece=1 << 20), length=10**9))
        assert found.read_length == MOST_AT_ONCE == 5000


def test_a_large_file_is_read_whole_once_and_then_in_small_parts() -> None:
    body = ("0123456789 zehn Zeichen, und mehr: äöü€😀\n" * 100_000).encode()
    text = body.decode()

    async def reads() -> None:
        reader, content = SliceReader(), Bytes(body, piece=1 << 20, identity="a")
        await reader.read(content)
        assert content.given < len(body) * 1.2
        for offset in (0, 1, len(text) // 2, len(text) - 3, len(text)):
            content.given = 0
            found = await reader.read(content, offset=offset)
            assert found.content == text[offset : offset + 5000]
            assert content.given <= 2 * text_index.STEP

    asyncio.run(reads())


def test_the_memory_for_a_slice_does_not_grow_with_the_file() -> None:
    piece = "äöü\n".encode() * 150_000

    @dataclass
    class Endless(Bytes):
        repeated: int = 1

        @property
        def size(self) -> int:
            return len(piece) * self.repeated

        async def stream(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
            while start < end:
                part = piece[start % len(piece) : start % len(piece) + end - start]
                yield part
                start += len(part)

    def most_used(repeated: int) -> int:
        tracemalloc.start()
        found = asyncio.run(SliceReader().read(Endless(b"", repeated=repeated), offset=10**6 * repeated // 2))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.total == 600_000 * repeated
        return most

    assert most_used(40) < most_used(4) + 2 * len(piece)
