"""Which server is meant, where somebody else made the folder."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextbase.errors import Unauthenticated, Unavailable
from contextbase.servers.choice import find_server

_NOBODY = 65534
_EVIL = "http://127.0.0.1:9"


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every account gets into: in one that is closed, root's default data folder is elsewhere."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)
        monkeypatch.undo()  # nobody is in it any more


@pytest.fixture
def trap(outside: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder of a running server, in the current folder, whose token is a link to one of ours."""
    for name in ("CONTEXTBASE_URL", "CONTEXTBASE_TOKEN", "CONTEXTBASE_SERVER", "CONTEXTBASE_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(outside / "state"))
    (outside / "ours").write_text("cb_ours\n")
    data = outside / "place" / ".contextbase-data"
    data.mkdir(parents=True)
    (data / "server.json").write_text(json.dumps({"url": _EVIL, "process_id": 4}))
    (data / "owner-token").symlink_to(outside / "ours")
    monkeypatch.chdir(data.parent)
    with (data / "lock").open("w") as lock:
        lock.write("4\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield data


@pytest.mark.parametrize("is_named", [False, True], ids=["found", "named"])
def test_an_owner_token_that_is_a_link_is_not_sent(trap: Path, is_named: bool) -> None:
    with pytest.raises(Unauthenticated):
        find_server(data=trap if is_named else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another account")
def test_an_owner_token_of_another_account_than_its_folder_is_not_sent(trap: Path) -> None:
    (trap / "owner-token").unlink()
    (trap / "owner-token").hardlink_to(trap.parent.parent / "ours")
    os.chown(trap, _NOBODY, _NOBODY)
    with pytest.raises(Unauthenticated):
        find_server(data=trap)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another account")
def test_no_token_is_sent_to_a_server_whose_folder_here_is_another_accounts(
    trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(trap, _NOBODY, _NOBODY)
    monkeypatch.setenv("CONTEXTBASE_TOKEN", "cb_ours")
    with pytest.raises(Unavailable) as refused:
        find_server()
    assert str(trap) in refused.value.message
    assert find_server(data=trap).url == _EVIL  # who names it means it


def test_a_folder_of_ours_is_found_with_its_token(trap: Path) -> None:
    (trap / "owner-token").unlink()
    (trap / "owner-token").write_text("cb_its_own\n")
    assert find_server().token == "cb_its_own"
