"""Opencode's database: copied whole while it is open, and brought back to a new home."""

import sqlite3
from contextlib import closing
from pathlib import Path

from contextbase.agents.opencode_database import OpencodeDatabase


def rows(place: Path) -> list[str]:
    with closing(sqlite3.connect(place)) as database:
        return [name for (name,) in database.execute("select name from session order by name")]


def test_what_is_only_in_the_log_of_an_open_database_is_kept_and_restored(tmp_path: Path) -> None:
    live, kept = tmp_path / "home" / "opencode.db", tmp_path / "data" / "opencode.db"
    database = OpencodeDatabase(live=live, kept=kept)
    database.restore()  # nothing is there yet
    with closing(sqlite3.connect(live)) as opened:
        opened.execute("pragma journal_mode=wal")
        opened.execute("create table session (name text)")
        opened.execute("insert into session values ('one')")
        opened.commit()
        database.keep()
    assert [place.name for place in kept.parent.iterdir()] == ["opencode.db"]
    elsewhere = tmp_path / "other" / "opencode.db"
    OpencodeDatabase(live=elsewhere, kept=kept).restore()
    assert rows(elsewhere) == ["one"]


def test_a_database_that_is_in_use_is_not_replaced_by_its_copy(tmp_path: Path) -> None:
    live, kept = tmp_path / "live.db", tmp_path / "kept.db"
    for place, name in ((live, "new"), (kept, "old")):
        with closing(sqlite3.connect(place)) as database, database:
            database.execute("create table session (name text)")
            database.execute("insert into session values (?)", (name,))
    OpencodeDatabase(live=live, kept=kept).restore()
    assert rows(live) == ["new"]


def test_a_link_in_the_workspace_is_not_restored(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    kept = tmp_path / "kept.db"
    kept.symlink_to(tmp_path / "secret")
    OpencodeDatabase(live=tmp_path / "live.db", kept=kept).restore()
    assert not (tmp_path / "live.db").exists()
