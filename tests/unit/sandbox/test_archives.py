"""Tar streams on their way into a sandbox and out of it."""

import io
import tarfile
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from pathlib import PurePosixPath

import pytest

from contextbase.errors import InvalidInput
from contextbase.sandbox.archives import checked, normalized
from contextbase.workspaces.model import Owner

OWNER = Owner(uid=4711, gid=4712)


def member(name: str, kind: bytes = tarfile.REGTYPE, *, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def packed(*members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for entry in members:
            info, content = entry if isinstance(entry, tuple) else (entry, b"")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


async def in_pieces(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(stream: AsyncIterator[bytes]) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(b"".join([piece async for piece in stream])))


def names(archive: tarfile.TarFile) -> list[str]:
    return [info.name for info in archive.getmembers()]


HOSTILE = {
    "an absolute name": [member("/etc/passwd")],
    "a name that climbs": [member("../outside")],
    "a name that climbs later": [member("a/../../outside")],
    "a file through a link": [member("way", tarfile.SYMTYPE, target="/etc"), member("way/passwd")],
    "a file in place of a link": [member("way", tarfile.SYMTYPE, target="/etc/passwd"), member("way")],
    "a folder in place of a link": [member("way", tarfile.SYMTYPE, target="/etc"), member("way", tarfile.DIRTYPE)],
    "a hard link to elsewhere": [member("x", tarfile.LNKTYPE, target="/etc/passwd")],
    "a hard link that climbs": [member("x", tarfile.LNKTYPE, target="../passwd")],
    "a hard link through a link": [
        member("way", tarfile.SYMTYPE, target="/etc"),
        member("x", tarfile.LNKTYPE, target="way/passwd"),
    ],
    "a device": [member("null", tarfile.CHRTYPE)],
    "a block device": [member("disk", tarfile.BLKTYPE)],
    "a pipe": [member("pipe", tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
async def test_what_would_land_elsewhere_is_refused(members: Iterable[tarfile.TarInfo]) -> None:
    with pytest.raises(InvalidInput):
        await read(checked(in_pieces(packed(*members)), OWNER))


async def test_nothing_goes_through_a_link_that_is_there_but_may_stand_in_its_place() -> None:
    there = [PurePosixPath("way")]
    with pytest.raises(InvalidInput, match="there already"):
        await read(checked(in_pieces(packed(member("way/file"))), OWNER, there))
    archive = await read(checked(in_pieces(packed(member("way", tarfile.SYMTYPE, target="other"))), OWNER, there))
    assert names(archive) == ["way"]


async def test_what_is_no_archive_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a tar archive"):
        await read(checked(in_pieces(b"no archive at all" * 100), OWNER))


async def test_an_archive_that_breaks_off_is_refused() -> None:
    whole = packed((member("file"), b"x" * 10_000))
    with pytest.raises(InvalidInput, match="not a tar archive"):
        await read(checked(in_pieces(whole[:4000]), OWNER))


async def test_what_comes_in_is_the_owners_and_has_no_special_rights() -> None:
    root = member("program", mode=0o6755)
    root.uid, root.gid, root.uname, root.gname = 0, 0, "root", "root"
    archive = await read(checked(in_pieces(packed((root, b"#!"))), OWNER))
    (came,) = archive.getmembers()
    assert (came.uid, came.gid, came.uname, came.mode) == (OWNER.uid, OWNER.gid, "", 0o755)
    opened = archive.extractfile(came)
    assert opened is not None
    assert opened.read() == b"#!"


async def test_folders_come_before_what_is_in_them() -> None:
    archive = await read(checked(in_pieces(packed(member("a/b/file"), member("a/b", tarfile.DIRTYPE))), OWNER))
    assert names(archive) == ["a", "a/b", "a/b/file"]


async def test_links_keep_their_targets_wherever_they_lead() -> None:
    way = member("bin/python", tarfile.SYMTYPE, target="/usr/bin/python3")
    archive = await read(checked(in_pieces(packed(way)), OWNER))
    assert archive.getmember("bin/python").linkname == "/usr/bin/python3"


async def test_the_same_files_packed_by_others_are_the_same_bytes() -> None:
    theirs, ours = member("./file"), member("file")
    theirs.uid, theirs.uname, theirs.mtime, theirs.pax_headers = 7, "somebody", 5.75, {"comment": "made by them"}
    ours.mtime = 5
    first = [piece async for piece in normalized(in_pieces(packed((theirs, b"text"))))]
    second = [piece async for piece in normalized(in_pieces(packed(member("./", tarfile.DIRTYPE), (ours, b"text"))))]
    assert b"".join(first) == b"".join(second)


async def test_what_cannot_be_stored_is_left_out() -> None:
    archive = await read(normalized(in_pieces(packed(member("pipe", tarfile.FIFOTYPE), member("file")))))
    assert names(archive) == ["file"]


async def test_names_that_are_no_unicode_survive() -> None:
    strange = b"caf\xe9".decode(errors="surrogateescape")
    archive = await read(normalized(in_pieces(packed(member(strange)))))
    assert names(archive) == [strange]


async def test_a_slow_reader_slows_the_source_down() -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        info = member("big")
        info.size = 1 << 40
        yield info.tobuf()
        while True:
            taken += 1 << 20
            yield bytes(1 << 20)

    async with aclosing(normalized(endless())) as stream:
        for _ in range(3):
            await anext(stream)
    assert taken < 16 << 20
