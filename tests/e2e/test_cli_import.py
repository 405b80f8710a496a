"""What `contextbase import` leaves out and holds back, how it goes about large folders, and how it stops."""

import os
import pty
import subprocess
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.server import PROGRAM, ServerProcess, environment

from contextbase.sdk import Change, Client
from contextbase.wire.commit import CommitView

pytestmark = pytest.mark.xdist_group("cli")

TOKEN = "gh" + "p_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
OTHER = "gh" + "p_Z1y2X3w4V5u6T7s8R9q0P1o2N3m4L5k6J7i8"


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "source"
    place.mkdir()
    return place


def fill(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_ignored_files_and_git_folders_stay_out_unless_the_project_has_them(cb: Cli, folder: Path) -> None:
    fill(folder, {"dist/app.js": "1", "src/a.py": "1"})
    assert cb("import", str(folder)).code == 0
    fill(
        folder,
        {
            ".gitignore": "dist/\n",
            ".git/config": "x",
            ".git/info/exclude": "*.mine\n",
            "src/.gitignore": "*.log\n",
            "src/a.log": "1",
            "src/a.mine": "1",
            "sub/.git": "gitdir: x",
            "dist/app.js": "2",
            "dist/new.js": "1",
        },
    )
    shown = cb("import", str(folder), "--dry-run").stdout
    assert "ignore  dist/new.js  (.gitignore:1: dist/)" in shown.splitlines()
    done = cb("import", str(folder), "--delete", "--json")
    assert (done.code, done.json["deleted"]) == (0, [])
    assert sorted(done.json["written"]) == [".gitignore", "dist/app.js", "src/.gitignore"]
    assert done.json["ignored"] == {
        ".git/": "built-in: .git",
        "dist/new.js": ".gitignore:1: dist/",
        "src/a.log": "src/.gitignore:1: *.log",
        "src/a.mine": ".git/info/exclude:1: *.mine",
        "sub/.git": "built-in: .git",
    }
    assert cb("project", "set", os.environ["CONTEXTBASE_PROJECT"], "--no-gitignore").code == 0
    assert sorted(cb("import", str(folder), "--json").json["written"]) == ["dist/new.js", "src/a.log", "src/a.mine"]


def test_no_link_leads_to_an_ignore_file(cb: Cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("*\n")
    (folder / ".gitignore").symlink_to(tmp_path / "rules")
    fill(folder, {"a.txt": "1"})
    assert sorted(cb("import", str(folder), "--json").json["written"]) == [".gitignore", "a.txt"]


def test_excluded_files_are_neither_written_nor_deleted(cb: Cli, folder: Path) -> None:
    fill(folder, {"a.txt": "1", "big/b.bin": "1", "c.bin": "1"})
    assert cb("import", str(folder), "--prefix", "p", "--exclude", "*.bin").code == 0
    assert cb("import", str(folder), "--prefix", "p", "--json").json["written"] == ["p/big/b.bin", "p/c.bin"]
    fill(folder, {"a.txt": "2", "big/b.bin": "2"})
    (folder / "c.bin").unlink()
    done = cb("import", str(folder), "--prefix", "p", "--delete", "--exclude", "big", "--exclude", "*.bin", "--json")
    assert (done.json["written"], done.json["deleted"], done.json["excluded"]) == (["p/a.txt"], [], ["big/"])


def test_credentials_are_held_back_unless_they_are_allowed_or_the_project_has_them(cb: Cli, folder: Path) -> None:
    fill(folder, {"a.py": f"old = '{TOKEN}'\n", "b.py": "1"})
    held = cb("import", str(folder), "--json")
    assert (held.code, held.json["written"], list(held.json["held_back"])) == (1, ["b.py"], ["a.py"])
    assert TOKEN not in held.stdout
    assert cb("import", str(folder), "--allow", "a.py").code == 0
    fill(folder, {".env": "PASSWORD=1", "a.py": f"old = '{TOKEN}'\nmore\n", "b.py": OTHER})
    told = cb("import", str(folder))
    assert (told.code, "1 written" in told.stdout) == (1, True)
    assert "'.env' looks like a file of environment variables" in told.stdout
    assert "'b.py' has what looks like a GitHub token in line 1" in told.stdout
    assert cb("cat", "b.py").stdout == "1"
    project = os.environ["CONTEXTBASE_PROJECT"]
    assert cb("project", "set", project, "--allow", "*.py", "--json").json["allowed_secrets"] == ["*.py"]
    assert list(cb("import", str(folder), "--json").json["held_back"]) == [".env"]


def test_a_large_import_says_in_how_many_commits_it_comes(cb: Cli, folder: Path) -> None:
    fill(folder, {f"{number:04}": str(number) for number in range(1001)})
    assert "write 1,001 entries and delete 0 in 2 commits" in cb("import", str(folder), "--dry-run").stdout
    done = cb("import", str(folder))
    assert (done.code, "1,001 written" in done.stdout) == (0, True)
    assert "1,001 changes" in done.stderr
    assert "in 2 commits" in done.stderr
    assert len(cb("log", "--json").json) == 2


def test_an_interrupted_import_says_what_is_in_and_goes_on_when_run_again(
    cb: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, {f"{number:04}": str(number) for number in range(2001)})
    commit = Client.commit

    def interrupted(client: Client, project: str, changes: list[Change], **options: object) -> CommitView:
        if len(changes) < 1000:
            raise KeyboardInterrupt
        return commit(client, project, changes, **options)  # type: ignore[arg-type]  # passed on

    with monkeypatch.context() as patched:
        patched.setattr(Client, "commit", interrupted)
        stopped = cb("import", str(folder))
    assert stopped.code == 130
    assert "Interrupted. 2,000 of 2,001 changes went in. That is 2 of 3 commits (1 to 2)" in stopped.stderr
    again = cb("import", str(folder), "--json").json
    assert (len(again["written"]), again["equal"]) == (1, 2000)


def test_putting_a_large_file_shows_how_far_it_is(cb: Cli, server: ServerProcess, tmp_path: Path) -> None:
    assert cb("project", "show", os.environ["CONTEXTBASE_PROJECT"]).code == 0
    (tmp_path / "large.bin").write_bytes(os.urandom(3 << 20))
    reader, terminal = pty.openpty()
    command = [PROGRAM, "put", str(tmp_path / "large.bin"), "large.bin", "--data", str(server.data)]
    variables = environment(CONTEXTBASE_PROJECT=os.environ["CONTEXTBASE_PROJECT"], TERM="xterm")
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while piece := _read(reader):
            shown += piece
        assert process.wait(60) == 0
    os.close(reader)
    assert b"uploading large.bin" in shown
    assert b"3.1/3.1 MB" in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that nobody has the other end any more
        return b""
