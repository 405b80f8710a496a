"""What an account keeps about servers."""

import os
import threading
from pathlib import Path

import pytest
from tests.support.require import require_root

from contextbase.data_folder import DataFolder, RunningServer
from contextbase.errors import InvalidInput, MachineProblem
from contextbase.servers.registry import Login, ServerRegistry

LOGIN = Login(name="work", url="https://base.example", token="cb_x")
NOBODY = 65534


@pytest.fixture
def registry(tmp_path: Path) -> ServerRegistry:
    return ServerRegistry(tmp_path / "state")


def test_the_first_login_is_the_default_until_another_is_made_so_or_it_is_removed(registry: ServerRegistry) -> None:
    registry.store_login(LOGIN, is_default=False)
    other = Login(name="home", url="https://home.example", token="cb_y")
    registry.store_login(other, is_default=False)
    assert (registry.default_login(), registry.logins()) == (LOGIN, [other, LOGIN])
    registry.store_login(other, is_default=True)
    assert registry.default_login() == other
    assert registry.remove_login("home")
    assert (registry.default_login(), registry.login("home"), registry.login("work")) == (None, None, LOGIN)
    assert not registry.remove_login("home")


def test_a_token_is_not_shown_with_its_login() -> None:
    assert "cb_x" not in repr(LOGIN)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0b", ".hidden", "ä"])
def test_a_name_that_could_be_another_file_is_refused(registry: ServerRegistry, name: str) -> None:
    with pytest.raises(InvalidInput):
        registry.store_login(Login(name=name, url=LOGIN.url, token=LOGIN.token), is_default=True)
    assert registry.login(name) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"url": 1, "token": "x"}', '{"data": 1}'])
def test_files_that_are_not_ours_are_passed_over(registry: ServerRegistry, content: str) -> None:
    registry.store_login(LOGIN, is_default=True)
    for folder in ("logins", "running"):
        (registry.path / folder / "odd.json").write_text(content)
        (registry.path / folder / "odd.json").chmod(0o600)
    assert (registry.logins(), registry.running()) == ([LOGIN], [])


def test_a_login_that_others_can_read_or_own_is_not_used(registry: ServerRegistry) -> None:
    registry.store_login(LOGIN, is_default=True)
    file = registry.path / "logins" / "work.json"
    file.chmod(0o644)
    assert registry.login("work") is None
    require_root()
    file.chmod(0o600)
    os.chown(file, NOBODY, NOBODY)
    assert registry.login("work") is None
    os.chown(registry.path, NOBODY, NOBODY)
    with pytest.raises(MachineProblem):
        registry.store_login(LOGIN, is_default=True)


def test_root_with_the_home_of_a_user_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_root()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ServerRegistry.of_this_account().path == tmp_path / ".local" / "state" / "contextbase"
    os.chown(tmp_path, NOBODY, NOBODY)
    assert ServerRegistry.of_this_account().path == Path("/root/.local/state/contextbase")


def test_servers_that_start_and_stop_at_once_are_all_known_and_all_forgotten(
    registry: ServerRegistry, tmp_path: Path
) -> None:
    folders = [DataFolder(tmp_path / f"data-{number}") for number in range(8)]
    started, stop = threading.Barrier(len(folders) + 1), threading.Event()

    def serve(number: int, folder: DataFolder) -> None:
        folder.create()
        with folder.lock():
            folder.announce(RunningServer(url=f"http://127.0.0.1:{number + 1}", process_id=os.getpid()))
            registry.remember(folder.path)
            started.wait(60)
            assert stop.wait(60)
            registry.forget(folder.path)
            folder.withdraw()

    threads = [threading.Thread(target=serve, args=each) for each in enumerate(folders)]
    for thread in threads:
        thread.start()
    started.wait(60)
    assert [local.name for local in registry.running()] == [f"127.0.0.1:{number}" for number in range(1, 9)]
    stop.set()
    for thread in threads:
        thread.join(60)
    assert registry.running() == []


def test_what_stopped_without_a_word_is_forgotten_when_the_next_server_starts(
    registry: ServerRegistry, tmp_path: Path
) -> None:
    registry.remember(tmp_path / "gone")
    assert registry.running() == []
    registry.remember(tmp_path / "next")
    assert len(list((registry.path / "running").iterdir())) == 1
