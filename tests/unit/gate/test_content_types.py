import pytest

from contextbase.gate.content_types import content_type

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20
ZIP = b"PK\x03\x04" + b"\x00" * 20
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("path", "start", "expected"),
    [
        ("a.md", b"# Plan\n", "text/markdown"),
        ("README", b"# Plan\n", "text/plain"),
        ("picture", PNG, "image/png"),
        ("picture.txt", PNG, "image/png"),
        ("picture.jpg", PNG, "image/png"),
        ("report.docx", ZIP, WORD),
        ("report", ZIP, "application/zip"),
        ("report.md", ZIP, "application/zip"),
        ("module.ts", b"export const a = 1;\n", "text/x-typescript"),
        ("clip.mpeg", b"a film is to come\n", "text/plain"),
        ("a.png", b"not a picture\n", "text/plain"),
        ("a.svg", b"<svg/>\n", "image/svg+xml"),
        ("a.json", b"\x00\x01\x02", "application/octet-stream"),
        ("a.txt", b"\x00\x01\x02", "application/octet-stream"),
        ("data", b"\x00\x01\x02", "application/octet-stream"),
        ("a.txt", "gr\u00fc\u00df dich".encode()[:3], "text/plain"),
        ("a.txt", "grün".encode("utf-16"), "text/plain"),
        ("data", "grün".encode("latin-1") + b" und mehr", "application/octet-stream"),
        ("empty.json", b"", "application/json"),
        ("clip.webp", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        ("song.m4a", b"\x00\x00\x00 ftypM4A ", "audio/mp4"),
        ("old.tar", b"name" + b"\x00" * 253 + b"ustar\x0000", "application/x-tar"),
        ("film", b"\x00\x00\x00 ftypisom", "video/mp4"),
    ],
)
def test_a_type_comes_from_the_content_and_where_that_leaves_it_open_from_the_name(
    path: str, start: bytes, expected: str
) -> None:
    assert content_type(path, start) == expected


def test_a_type_that_somebody_chose_stays_as_long_as_the_content_can_be_that() -> None:
    own = "application/vnd.own"
    assert content_type("a", b"text\n", before=own, path_before="a") == own
    assert content_type("a", ZIP, before=own, path_before="a") == own
    assert content_type("a", PNG, before=own, path_before="a") == "image/png"
    assert content_type("b.md", b"text\n", before=own, path_before="a") == "text/markdown"


def test_a_file_that_only_moves_is_no_text_for_its_new_name() -> None:
    assert content_type("b.txt", None, before="image/png", path_before="a.png") == "image/png"
    assert content_type("b.txt", None, before="text/markdown", path_before="a.md") == "text/plain"
    assert content_type("b", None, before="text/markdown", path_before="a.md") == "text/markdown"
