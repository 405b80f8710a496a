"""The commands about files, in a project and in an open workspace."""

import os
import zipfile
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.require import require_program, require_root

pytestmark = pytest.mark.xdist_group("cli")

PLACES = ["project", "workspace"]


@pytest.fixture
def filled(cb: Cli, tmp_path: Path) -> Cli:
    (tmp_path / "plan.md").write_text("# Plan\n")
    assert cb("put", str(tmp_path / "plan.md"), "docs/plan.md").code == 0
    return cb


@pytest.fixture(params=PLACES)
def where(request: pytest.FixtureRequest, filled: Cli) -> tuple[str, ...]:
    """The options that name the place."""
    if request.param == "project":
        return ()
    assert filled("workspace", "create").code == 0
    return ("--workspace", "me")


def test_files_are_put_listed_read_moved_and_removed_in_both_places(
    filled: Cli, where: tuple[str, ...], tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Note\n")
    assert "written  docs/note.md" in filled("put", str(note), "docs/note.md", *where).stdout
    assert [entry["path"] for entry in filled("ls", "docs", "--json", *where).json] == ["docs/note.md", "docs/plan.md"]
    assert [entry["path"] for entry in filled("ls", "docs/note.md", "--json", *where).json] == ["docs/note.md"]
    assert len(filled("ls", "-R", *where).stdout.splitlines()) == 2
    assert filled("cat", "docs/note.md", *where).stdout == "# Note\n"
    assert filled("mv", "docs", "papers", *where).code == 0
    assert "papers/" in filled("tree", *where).stdout
    assert filled("rm", "papers", *where).code != 0
    assert filled("rm", "-r", "papers", *where).code == 0
    assert filled("ls", "--json", *where).json == []
    if where:
        assert "docs/" in filled("ls").stdout, "nothing was committed"


def test_a_workspace_takes_no_options_of_a_commit(filled: Cli, tmp_path: Path) -> None:
    assert filled("workspace", "create").code == 0
    for more in (("-m", "why"), ("--base", "1")):
        assert filled("put", str(tmp_path / "plan.md"), "new.md", "--workspace", "me", *more).code == 2
    assert filled("ls", "--workspace", "me", "--at", "1").code == 2


def test_uploads_never_take_anothers_place(filled: Cli, where: tuple[str, ...], tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a,b\n")
    odd = tmp_path / 'ä "q"; x=1.txt'
    odd.write_text("odd\n")
    assert filled("upload", str(data), *where).code == 0
    [again, other] = filled("upload", str(data), str(odd), "--json", *where).json
    assert again["fileRef"] == f"{'workspace' if where else 'project'}:upload/data (1).csv"
    assert other["path"] == 'upload/ä "q"; x=1.txt'
    assert filled("upload", str(data), "--to", "docs/in", "--json", *where).json[0]["path"] == "docs/in/data.csv"
    assert filled("upload", str(tmp_path / "none"), *where).code == 2


def test_a_file_is_downloaded_whole(filled: Cli, where: tuple[str, ...], tmp_path: Path) -> None:
    content = os.urandom(2_500_000)
    (tmp_path / "large").write_bytes(content)
    assert filled("put", str(tmp_path / "large"), "large.bin", *where).code == 0
    target = tmp_path / "back.bin"
    assert filled("download", "large.bin", str(target), *where).code == 0
    assert target.read_bytes() == content
    (tmp_path / "into").mkdir()
    told = filled("download", "large.bin", str(tmp_path / "into"), "--json", *where).json
    assert (told["size"], Path(told["target"]).read_bytes() == content) == (len(content), True)
    assert filled("download", "docs", *where).code == 2
    assert filled("download", "none", *where).code == 1


def test_folders_are_made_and_counted(filled: Cli, where: tuple[str, ...]) -> None:
    assert filled("mkdir", "new/deep", *where).code == 0
    assert [folder["path"] for folder in filled("tree", "--json", *where).json["folders"]] == ["docs", "new"]
    found = filled("info", "--json", *where).json
    assert (found["info"]["files"], found["info"]["diskUsage"]) == (1, 7)
    assert (found["usage"]["most_bytes"] is None) == (not where)
    assert "1 file in 3 folders" in filled("info", *where).stdout


def test_what_stands_in_a_workspace_is_exported(filled: Cli, tmp_path: Path) -> None:
    folder = Path(filled("workspace", "create").stdout.strip())
    (folder / "docs" / "new.md").write_text("new\n")
    assert filled("export", str(tmp_path / "all.zip"), "--workspace", "me").code == 0
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert sorted(archive.namelist()) == ["docs/new.md", "docs/plan.md"]


def test_a_sync_registers_what_programs_did_and_the_history_tells(filled: Cli) -> None:
    folder = Path(filled("workspace", "create").stdout.strip())
    (folder / "made.txt").write_text("made\n")
    (folder / "docs" / "plan.md").write_text("changed\n")
    synced = filled("workspace", "sync").stdout.splitlines()
    assert {*synced} == {"M  docs/plan.md", "A  made.txt", "2 changes were registered."}
    assert filled("workspace", "sync", "--json").json["registered"] == 0
    told = filled("workspace", "history", "--json").json
    assert {(one["action"], one["path"], one["operator_type"]) for one in told if one["action"] != "sync"} == {
        ("write", "docs/plan.md", "external"),
        ("write", "made.txt", "external"),
    }
    assert [one["action"] for one in filled("workspace", "history", "made.txt", "--json").json] == ["write"]
    assert "made.txt" in filled("workspace", "history").stdout


def test_what_ffmpeg_makes_in_a_sandbox_is_registered_with_its_log(filled: Cli) -> None:
    require_root()
    require_program("bwrap", "scripts/system-packages.sh")
    require_program("ffmpeg", "scripts/system-packages.sh")
    folder = Path(filled("workspace", "create").stdout.strip())
    box = filled("sandbox", "create").stdout.strip()
    made = "ffmpeg -nostdin -f lavfi -i testsrc=duration=1:size=64x64:rate=5 test.gif"
    done = filled("sandbox", "exec", box, "--log", "--", *made.split())
    assert done.code == 0, done.stderr
    [log] = (folder / ".logs" / "ffmpeg").iterdir()
    assert "test.gif" in log.read_text()
    assert filled("workspace", "sync", "--json").json["registered"] == 0
    told = filled("workspace", "history", "--json").json
    written = {one["path"]: one["operator_type"] for one in told if one["action"] == "write"}
    assert (written["test.gif"], f".logs/ffmpeg/{log.name}" in written) == ("external", True)
    [gif] = filled("ls", "test.gif", "--json", "--workspace", "me").json
    assert (gif["mime"], gif["size"] > 0) == ("image/gif", True)
    assert filled("sandbox", "remove", box).code == 0
