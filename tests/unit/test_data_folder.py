"""The data folder: its lock, its secrets, and what a broken one says."""

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contextbase import data_folder
from contextbase.data_folder import DataFolder, RunningServer, default_data_folder, write_private
from contextbase.errors import Conflict, MachineProblem

HOLD_THE_LOCK = """
import sys
from pathlib import Path
from contextbase.data_folder import DataFolder
with DataFolder(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    made = DataFolder(tmp_path / "data")
    made.create()
    return made


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_one_process_owns_the_folder_and_the_other_is_told_which(folder: DataFolder) -> None:
    command = [sys.executable, "-c", HOLD_THE_LOCK, str(folder.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert folder.holder()
        with pytest.raises(Conflict, match=f"pid {holder.pid}") as caught, folder.lock():
            pass
        assert str(folder.path) in caught.value.message
        holder.kill()
    assert folder.holder() is None
    with folder.lock():  # gone with the process, kill -9 or not
        assert (folder.path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_look_whether_the_folder_is_owned_never_keeps_its_owner_out(folder: DataFolder) -> None:
    with ThreadPoolExecutor(4) as lookers:
        looks = [lookers.submit(folder.holder) for _ in range(500)]
        for _ in range(50):
            with folder.lock():
                pass
        for look in looks:
            look.result()


def test_looking_leaves_no_trace(folder: DataFolder) -> None:
    assert folder.holder() is None
    assert folder.running_server() is None
    assert list(folder.path.iterdir()) == []
    assert DataFolder(folder.path / "none").running_server() is None
    assert not (folder.path / "none").exists()


def test_a_server_is_found_while_it_holds_the_lock(folder: DataFolder) -> None:
    server = RunningServer(url="http://127.0.0.1:1", process_id=os.getpid())
    folder.announce(server)
    assert folder.running_server() is None
    with folder.lock():
        assert folder.running_server() == server
        folder.withdraw()
        assert folder.running_server() is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"url": 1}', b"\xff", b'{"url": "u", "process_id": "x"}']
)
def test_an_announcement_that_makes_no_sense_is_no_server(folder: DataFolder, content: bytes) -> None:
    (folder.path / "server.json").write_bytes(content)
    with folder.lock():
        assert folder.running_server() is None


def test_an_announcement_this_account_may_not_read_is_a_clear_error(folder: DataFolder) -> None:
    (folder.path / "server.json").mkdir()  # like 0600 of another account, but for root too
    with pytest.raises(MachineProblem, match="CONTEXTBASE_URL"):
        folder.running_server()


def test_a_server_that_was_killed_is_not_found_while_another_process_holds_the_lock(folder: DataFolder) -> None:
    folder.announce(RunningServer(url="http://127.0.0.1:1", process_id=os.getpid() + 1))
    with folder.lock():
        assert folder.running_server() is None


def test_a_lock_that_cannot_be_opened_is_a_clear_error(folder: DataFolder) -> None:
    (folder.path / "lock").mkdir()
    with pytest.raises(MachineProblem, match="cannot be opened"), folder.lock():
        pass


def test_a_lock_that_is_a_link_is_not_followed(folder: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (folder.path / "lock").symlink_to(tmp_path / "target")
    with pytest.raises(MachineProblem), folder.lock():
        pass
    assert (tmp_path / "target").read_text() == "precious"


def test_secrets_are_for_their_owner_alone(folder: DataFolder) -> None:
    folder.write_owner_token("cb_x")
    folder.secret_key("audit")
    folder.announce(RunningServer(url="u", process_id=1))
    assert folder.read_owner_token() == "cb_x"
    assert {mode_of(file) for file in folder.path.iterdir()} == {0o600}


def test_an_owners_token_that_is_no_text_is_none_and_one_that_is_no_file_a_clear_error(folder: DataFolder) -> None:
    folder.owner_token.write_bytes(b"\xff\xfe")
    assert folder.read_owner_token() is None
    folder.owner_token.unlink()
    folder.owner_token.mkdir()
    with pytest.raises(MachineProblem, match="owner-token cannot be read"):
        folder.read_owner_token()


def test_a_key_is_made_once_and_kept(folder: DataFolder) -> None:
    key = folder.secret_key("audit")
    assert len(key) == 32
    assert folder.secret_key("audit") == key
    assert folder.secret_key("other") != key


def test_processes_that_make_a_key_at_once_agree_on_it(folder: DataFolder) -> None:
    with ThreadPoolExecutor(8) as makers:
        keys = set(makers.map(lambda _: folder.secret_key("audit"), range(32)))
    assert keys == {folder.secret_key("audit")}
    assert [file.name for file in folder.path.iterdir()] == ["audit.key"]


@pytest.mark.parametrize("content", [b"", b"\n", b"abcd", b"not hex", b"\xff" * 64])
def test_a_damaged_key_is_a_clear_error_and_never_used(folder: DataFolder, content: bytes) -> None:
    (folder.path / "audit.key").write_bytes(content)
    with pytest.raises(MachineProblem, match=r"audit\.key"):
        folder.secret_key("audit")
    assert (folder.path / "audit.key").read_bytes() == content


def test_writing_replaces_wholly_and_leaves_no_temporary_file(folder: DataFolder) -> None:
    path = folder.path / "file"
    path.write_text("old, and readable by all")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), mode_of(path)) == ("new", 0o600)
    assert list(folder.path.iterdir()) == [path]


def test_what_cannot_be_written_is_a_clear_error_and_leaves_nothing(folder: DataFolder) -> None:
    (folder.path / "taken").mkdir()
    with pytest.raises(MachineProblem, match="taken cannot be written"):
        write_private(folder.path / "taken", "new")
    assert [file.name for file in folder.path.iterdir()] == ["taken"]


@pytest.mark.parametrize("place", ["file", "file/below", "x" * 300, "/proc/none"])
def test_a_place_that_can_hold_no_folder_is_a_clear_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineProblem, match="Choose another with --data"):
        DataFolder(tmp_path / place).create()


def test_a_new_folder_shows_nobody_what_is_in_it(tmp_path: Path) -> None:
    DataFolder(tmp_path / "a" / "data").create()
    assert mode_of(tmp_path / "a" / "data") & 0o066 == 0


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_new_folder_is_as_open_as_it_must_be_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        DataFolder(tmp_path / "above" / "new").create()
    finally:
        os.umask(before)
    as_root = os.geteuid() == 0
    assert stat.S_IMODE((tmp_path / "above" / "new").stat().st_mode) == (0o711 if as_root else 0o700)
    if as_root:
        assert stat.S_IMODE((tmp_path / "above").stat().st_mode) == 0o711


def test_the_default_is_a_folder_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data_folder, "_everyone_can_pass", lambda _: True)
    assert default_data_folder() == tmp_path / ".contextbase-data"


def test_as_root_in_a_closed_place_the_default_is_a_reachable_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "platform", "linux")
    chosen = []
    for name in ("a", "b"):
        (closed / name).mkdir()
        monkeypatch.chdir(closed / name)
        chosen.append(default_data_folder())
    assert {place.parent for place in chosen} == {Path("/var/lib/contextbase")}
    assert chosen[0] != chosen[1]


def test_the_announcement_is_json_for_other_programs(folder: DataFolder) -> None:
    folder.announce(RunningServer(url="http://[::1]:1", process_id=2))
    assert json.loads((folder.path / "server.json").read_text()) == {"url": "http://[::1]:1", "process_id": 2}
