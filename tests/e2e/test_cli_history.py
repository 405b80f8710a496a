"""The commands about a project's past, and those that take folders in and out."""

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.support.cli import Cli

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with everything that a tree can hold."""
    place = tmp_path / "source"
    (place / "docs").mkdir(parents=True)
    (place / "empty").mkdir()
    (place / ".contextbase").mkdir()
    (place / ".contextbase" / "state").write_text("ours")
    (place / "docs" / "note.md").write_text("# Note\n\nfirst\n")
    (place / "data.json").write_text('{"a": 1, "b": [1, 2]}\n')
    (place / "run.sh").write_text("#!/bin/sh\n")
    (place / "run.sh").chmod(0o755)
    (place / "link").symlink_to("docs/note.md")
    (place / "out").symlink_to("/etc")
    (place / "large.bin").write_bytes(os.urandom(2 * 1024 * 1024))
    return place


def files(place: Path) -> dict[str, object]:
    """What is in a folder: contents, modes, links, empty folders."""
    found: dict[str, object] = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if name.startswith(".contextbase"):
            continue
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_dir():
            found |= {name: "folder"} if not any(path.iterdir()) else {}
        else:
            found[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def test_a_folder_goes_in_and_comes_out_as_it_was(cb: Cli, folder: Path, tmp_path: Path) -> None:
    done = cb("import", str(folder), "--json")
    assert (done.code, done.json["answers"], done.json["left_out"]) == (0, {"written": 7}, {}), done.stderr
    assert cb("export", str(tmp_path / "copy")).code == 0
    assert files(tmp_path / "copy") == files(folder)
    assert not (tmp_path / "copy" / ".contextbase").exists()
    again = cb("import", str(folder), "--json").json
    assert (again["written"], again["equal"], again["answers"]) == ([], 7, {})


def test_an_import_replaces_and_with_delete_removes(cb: Cli, folder: Path, tmp_path: Path) -> None:
    cb("import", str(folder), "--prefix", "site")
    assert cb("put", str(folder / "data.json"), "other.json").code == 0
    (folder / "docs" / "note.md").write_text("changed\n")
    (folder / "run.sh").unlink()
    (folder / "empty").rmdir()
    shown = cb("import", str(folder), "--prefix", "site", "--delete", "--dry-run").stdout
    assert ("write   site/docs/note.md" in shown, "delete  site/run.sh" in shown) == (True, True)
    assert cb("cat", "site/docs/note.md").stdout == "# Note\n\nfirst\n"
    kept = cb("import", str(folder), "--prefix", "site", "--json").json
    assert (kept["written"], kept["deleted"]) == (["site/docs/note.md"], [])
    gone = cb("import", str(folder), "--prefix", "site", "--delete", "--json").json
    assert sorted(gone["deleted"]) == ["site/empty", "site/run.sh"]
    assert cb("export", str(tmp_path / "copy"), "--path", "site").code == 0
    assert files(tmp_path / "copy" / "site") == files(folder)
    assert cb("cat", "other.json").code == 0


def test_what_cannot_be_imported_is_said_and_not_taken_for_deleted(cb: Cli, folder: Path) -> None:
    cb("import", str(folder))
    os.mkfifo(folder / "pipe")
    (folder / "cafe\u0301").write_text("not NFC")
    (folder / "data.json").unlink()
    os.mkfifo(folder / "data.json")
    done = cb("import", str(folder), "--delete", "--json")
    assert done.code == 1
    assert set(done.json["left_out"]) == {"pipe", "cafe\u0301", "data.json"}
    assert done.json["deleted"] == []
    assert cb("cat", "data.json").code == 0
    assert cb("import", str(folder / "nowhere")).code == 2


def test_exports_are_archives_of_any_snapshot(cb: Cli, folder: Path, tmp_path: Path) -> None:
    cb("import", str(folder))
    cb("rm", "docs/note.md")
    for name in ("a.tar", "a.tar.gz", "a.tgz"):
        assert cb("export", str(tmp_path / name), "--at", "1", "--path", "docs").code == 0
        with tarfile.open(tmp_path / name) as archive:
            assert archive.getnames() == ["docs/note.md"]
    assert cb("export", str(tmp_path / "a.zip")).code == 0
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert "docs/note.md" not in archive.namelist()
    with tarfile.open(fileobj=io.BytesIO(cb("export", "-", "--path", "data.json").stdout.encode())) as archive:
        assert archive.getnames() == ["data.json"]
    assert cb("export", str(folder)).code == 2
    assert cb("export", str(tmp_path / "b"), "--path", "nowhere").code == 1
    assert cb("export", str(tmp_path / "nowhere" / "b.zip")).code == 2


def test_a_tag_is_made_listed_meant_and_removed(cb: Cli, folder: Path) -> None:
    cb("import", str(folder), "--prefix", "a")
    assert cb("tag", "create", "v1", "-m", "the first").code == 0
    cb("rm", "-r", "a/docs")
    assert cb("cat", "a/docs/note.md", "--at", "v1").stdout.startswith("# Note")
    assert cb("cat", "a/docs/note.md", "--at", "head~1").code == 0
    assert "note.md" in cb("ls", "a/docs", "--at", "v1").stdout
    assert [(tag["name"], tag["seq"]) for tag in cb("tag", "list", "--json").json] == [("v1", 1)]
    assert "the first" in cb("tag", "list").stdout
    assert cb("show", "v1:a/docs/note.md").stdout.startswith("# Note")
    assert cb("tag", "delete", "v1").code == 0
    assert cb("ls", "--at", "v1").code == 1
    assert "no tags yet" in cb("tag", "list").stdout


def test_a_diff_is_a_patch_a_list_of_values_or_of_counts(cb: Cli, folder: Path) -> None:
    cb("import", str(folder))
    (folder / "data.json").write_text('{"a": 2, "b": [1, 2]}\n')
    cb("put", str(folder / "data.json"), "data.json", "-m", "two")
    cb("mv", "docs", "papers")
    patch = cb("diff", "1..2").stdout
    assert ('-{"a": 1, "b": [1, 2]}' in patch, '+{"a": 2, "b": [1, 2]}' in patch) == (True, True)
    assert "~ /a: 1 -> 2" in cb("diff", "1..2", "--values").stdout
    assert cb("diff").stdout.startswith("diff --git a/docs/note.md b/papers/note.md\nrename from docs/note.md")
    assert "docs/note.md -> papers/note.md" in cb("diff", "1", "--stat").stdout
    assert "2 files changed, 1 line added, 1 removed" in cb("diff", "1..head", "--stat").stdout
    assert [file["path"] for file in cb("diff", "1", "--path", "data.json", "--json").json] == ["data.json"]
    assert cb("diff", "--commit", "2").stdout == patch
    assert cb("diff", "--path", "data.json", "--numbers", "1..2").stdout == patch
    assert cb("diff", "--by", "user:owner", "--path", "data.json", "--json").json[0]["status"] == "added"
    shown = cb("show", "2").stdout
    assert ("user:owner  two" in shown, patch in shown) == (True, True)
    assert cb("show", "2", "--json").json["commit"]["seq"] == 2
    assert cb("diff", "9").code == 2
    assert cb("diff", "1", "--commit", "2").code == 2


def test_a_blame_names_who_wrote_each_line_or_value(cb: Cli, folder: Path) -> None:
    cb("import", str(folder), "-m", "the start")
    (folder / "docs" / "note.md").write_text("# Note\n\nfirst\nsecond\n")
    cb("put", str(folder / "docs" / "note.md"), "docs/note.md")
    (folder / "data.json").write_text('{"a": 1, "b": [1, 3]}\n')
    cb("put", str(folder / "data.json"), "data.json", "-m", "three")
    found = cb("blame", "docs/note.md", "--json").json
    assert [(run["first"], len(run["lines"]), run["number"]) for run in found["lines"]] == [(1, 3, 1), (4, 1, 2)]
    assert [line.split()[0] for line in cb("blame", "docs/note.md").stdout.splitlines()] == ["1", "1", "1", "2"]
    assert [line.split()[0] for line in cb("blame", "docs/note.md", "--at", "1").stdout.splitlines()] == ["1"] * 3
    parts = cb("blame", "data.json", "--values", "--json").json
    numbers = {part["pointer"]: part["number"] for part in parts["parts"]}
    assert numbers == {"/a": 1, "/b/0": 1, "/b/1": 2}
    assert "/b/1  three" in cb("blame", "data.json", "--values").stdout
    assert cb("blame", "docs/note.md", "--values").code == 2
    assert cb("blame", "large.bin").code == 2


def test_the_graph_shows_where_a_writer_was_overtaken_and_joined(cb: Cli, folder: Path) -> None:
    note = folder / "docs" / "note.md"
    note.write_text("".join(f"{number}\n" for number in range(20)))
    for base, first, last in ((None, "0", "19"), ("1", "zero", "19"), ("1", "0", "nineteen")):
        note.write_text("".join(f"{number}\n" for number in (first, *range(1, 19), last)))
        extra = () if base is None else ("--base", base)
        assert cb("put", str(note), "note.md", "-m", f"{first} {last}", *extra).code == 0
    shown = [line[:4].rstrip() for line in cb("log", "--graph").stdout.splitlines()]
    assert shown == ["*  3", "|\\", "* |", "| |", "|/", "* 1", ""]
    commits = cb("log", "--json").json
    assert [(commit["seq"], commit["parents"], commit["forks"]) for commit in commits] == [
        (3, [2, 1], [1]),
        (2, [1], []),
        (1, [], []),
    ]


def test_control_characters_of_a_file_command_no_terminal(cb: Cli, tmp_path: Path) -> None:
    (tmp_path / "evil").write_bytes(b"\x1b]0;owned\x07\n")
    cb("put", str(tmp_path / "evil"), "evil")
    for command in (("diff",), ("blame", "evil")):
        shown = cb(*command).stdout
        assert ("\x1b" in shown, "\\x1b]0;owned\\x07" in shown) == (False, True)
    assert json.dumps("\x1b]0;owned\x07\n")[1:-1] in cb("blame", "evil", "--json").stdout


def test_a_long_message_is_one_line_of_the_log_and_whole_in_show(cb: Cli, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n")
    cb("put", str(tmp_path / "a"), "a", "-m", "first\n\n9  2026-01-01 00:00:00  owner  innocent")
    [line, change] = cb("log").stdout.splitlines()
    assert (line.endswith("  first …"), change.split()) == (True, ["added", "a"])
    assert cb("show", "head").stdout.splitlines()[1:4] == ["", "    9  2026-01-01 00:00:00  owner  innocent", ""]
