"""The embedded PostgreSQL in odd places: names, spellings, variables and links that others chose."""

import os
from pathlib import Path

import pytest
from tests.support.embedded import copy, is_alive, owner_process, postmaster_of, read, running, write

from contextbase.data_folder import DataFolder
from contextbase.db.account import OsAccount
from contextbase.db.embedded import embedded_address
from contextbase.errors import MachineProblem

pytestmark = pytest.mark.xdist_group("embedded-postgres")


@pytest.mark.parametrize("name", ["a,b", 'a "quoted" name', "new\nline", os.fsdecode(b"not utf-8: \xff")])
async def test_any_name_a_folder_can_have_will_do(made_once: Path, empty_folder: Path, name: str) -> None:
    copy(made_once, empty_folder / name)
    async with running(DataFolder(empty_folder / name)) as server:
        await write(server, 1)
        assert await read(server) == [1]


async def test_variables_for_other_databases_do_not_matter(data: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PGPORT", "5433"), ("PGSSLMODE", "require"), ("PGTARGETSESSIONATTRS", "standby")):
        monkeypatch.setenv(name, value)
    async with running(data) as server:
        await write(server, 1)
        assert await read(server) == [1]


async def test_an_orphan_is_found_by_another_spelling_of_its_folder(data: DataFolder) -> None:
    other = DataFolder(data.path.parent / "elsewhere" / ".." / data.path.name)
    (data.path.parent / "elsewhere").mkdir(mode=0o711)
    with owner_process(other) as process:
        orphan = postmaster_of(process)
        process.kill()
        process.wait()
        assert is_alive(orphan)
        async with running(data) as server:
            assert not is_alive(orphan)
            await write(server, 1)


def test_the_address_depends_on_the_folder_alone(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = empty_folder / ("d" * 60) / ("e" * 60) / "postgres"
    (empty_folder / "link").symlink_to(empty_folder)
    address = embedded_address(deep)
    monkeypatch.setenv("TMPDIR", str(empty_folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert embedded_address(deep) == address
    assert embedded_address(empty_folder / "link" / deep.relative_to(empty_folder)) == address


@pytest.mark.usefixtures("as_root")
async def test_root_gives_nothing_away_through_a_link(empty_folder: Path) -> None:
    target = empty_folder / "precious"
    target.mkdir()
    (empty_folder / "postgres").symlink_to(target)
    with pytest.raises(MachineProblem, match="is a link"):
        async with running(DataFolder(empty_folder)):
            pass
    assert target.stat().st_uid == 0


async def test_an_account_without_a_name_is_told_so(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OsAccount, "has_name", lambda _: False)
    with pytest.raises(MachineProblem, match="an account with a name"):
        async with running(DataFolder(empty_folder)):
            pass
    assert not (empty_folder / "postgres" / "cluster").exists()


def test_a_number_nobody_has_is_an_account_without_a_name() -> None:
    assert not OsAccount(uid=4_000_000_000).has_name()
    assert OsAccount(uid=0).has_name()
