"""Which files a model is given as they are, and which it is only told of."""

from datetime import UTC, datetime

import pytest

from contextbase.files.content_parts import LARGEST_IMAGE, MOST_CHARACTERS, PartKind, image_part, part_kind
from contextbase.files.model import FileDetails, FileEntry
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def details(size: int, *, kind: Kind = Kind.FILE, name: str = "a.bin") -> FileDetails:
    entry = FileEntry(path=TreePath(name), kind=kind, size=size, modified_at=datetime.now(UTC), mime="")
    return FileDetails(entry=entry, hash=None if kind is Kind.DIRECTORY else ContentHash.of(b""))


@pytest.mark.parametrize(
    ("file", "characters", "start", "expected"),
    [
        (details(5), 5, b"hello", PartKind.TEXT),
        (details(0), 0, b"", PartKind.TEXT),
        (details(MOST_CHARACTERS * 3), MOST_CHARACTERS, b"a", PartKind.TEXT),
        (details(MOST_CHARACTERS + 1), MOST_CHARACTERS + 1, b"a", PartKind.TOO_LARGE),
        (details(len(PNG), name="a.txt"), None, PNG, PartKind.IMAGE),
        (details(LARGEST_IMAGE), None, PNG, PartKind.IMAGE),
        (details(LARGEST_IMAGE + 1), None, PNG, PartKind.TOO_LARGE),
        (details(3, name="a.png"), None, b"\x00\x01\x02", PartKind.BINARY),
        (details(4, name="a.tiff"), None, b"II*\x00", PartKind.BINARY),
        (details(0, kind=Kind.DIRECTORY), None, b"", PartKind.FOLDER),
        (details(9, kind=Kind.SYMLINK), 9, b"/etc/pass", PartKind.LINK),
    ],
)
def test_text_and_images_go_in_and_the_rest_is_referred_to(
    file: FileDetails, characters: int | None, start: bytes, expected: PartKind
) -> None:
    assert part_kind(file, characters=characters, start=start) is expected


def test_an_images_type_is_that_of_its_bytes() -> None:
    assert image_part(b"GIF89a" + bytes(9)).media_type == "image/gif"
