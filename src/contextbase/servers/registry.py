"""What an account keeps about servers, below $XDG_STATE_HOME/contextbase or ~/.local/state/contextbase.

running/<hash>.json   the data folder of a server this account started; whether it still runs, the folder's lock says
logins/<name>.json    another server: its URL and a token
default-login         the name of one of them
lock                  held while any of these changes

All are private files, replaced whole. Files of another account are not read: root and a user who share a home do not
see each other's servers.
"""

import contextlib
import fcntl
import json
import os
import pwd
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from contextbase.data_folder import DataFolder, write_private
from contextbase.errors import InvalidInput, MachineProblem
from contextbase.servers.request import check_server

__all__ = ["LocalServer", "Login", "ServerRegistry"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalServer:
    """One that runs on this machine, started by this account."""

    url: str
    data: Path

    @property
    def name(self) -> str:
        return urlsplit(self.url).netloc


@dataclass(frozen=True, kw_only=True, slots=True)
class Login:
    name: str
    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerRegistry:
    path: Path

    @classmethod
    def of_this_account(cls) -> "ServerRegistry":
        return cls(_state_home() / "contextbase")

    def remember(self, data: Path) -> None:
        """A server has announced itself in this data folder. Those that stopped without a word are forgotten."""
        with self._locked():
            for file, local in self._running_files():
                if local is None:
                    file.unlink(missing_ok=True)
            write_private(self._running_file(data), json.dumps({"data": str(data)}) + "\n")

    def forget(self, data: Path) -> None:
        with self._locked():
            self._running_file(data).unlink(missing_ok=True)

    def running(self) -> list[LocalServer]:
        """Those that run now, by name."""
        return sorted((local for _, local in self._running_files() if local), key=lambda local: local.name)

    def logins(self) -> list[Login]:
        found = (self._read_login(file) for file in _files_in(self.path / "logins"))
        return sorted((login for login in found if login), key=lambda login: login.name)

    def login(self, name: str) -> Login | None:
        return self._read_login(self._login_file(name)) if _NAME.fullmatch(name) else None

    def default_login(self) -> Login | None:
        name = _read_private(self.path / "default-login")
        return None if name is None else self.login(name.strip())

    def store_login(self, login: Login, *, is_default: bool) -> None:
        """The first one stored is the default in any case."""
        if not _NAME.fullmatch(login.name):
            raise InvalidInput(
                f"{login.name[:100]!r} cannot be a server's name: use up to 100 letters, digits and . _ : - "
                "and start with a letter or digit. Choose one with --name."
            )
        check_server(login.url, login.token)
        with self._locked():
            write_private(self._login_file(login.name), json.dumps({"url": login.url, "token": login.token}) + "\n")
            if is_default or self.default_login() is None:
                write_private(self.path / "default-login", login.name + "\n")

    def remove_login(self, name: str) -> bool:
        """Whether there was one."""
        with self._locked():
            if self.login(name) is None:
                return False
            default = self.default_login()
            if default is not None and default.name == name:
                (self.path / "default-login").unlink()
            self._login_file(name).unlink()
            return True

    def _running_file(self, data: Path) -> Path:
        return self.path / "running" / f"{sha256(os.fsencode(data)).hexdigest()[:16]}.json"

    def _login_file(self, name: str) -> Path:
        return self.path / "logins" / f"{name}.json"

    def _running_files(self) -> Iterator[tuple[Path, LocalServer | None]]:
        for file in _files_in(self.path / "running"):
            known = _object_in(file)
            if known is None:
                continue
            data = Path(str(known.get("data", "")))
            try:
                server = DataFolder(data).running_server() if data.is_absolute() else None
            except MachineProblem:  # not readable any more, so it is not a server of ours
                server = None
            yield file, None if server is None else LocalServer(url=server.url, data=data)

    def _read_login(self, file: Path) -> Login | None:
        known = _object_in(file)
        if known is None or not isinstance(known.get("url"), str) or not isinstance(known.get("token"), str):
            return None
        return Login(name=file.name.removesuffix(".json"), url=known["url"], token=known["token"])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            for folder in (self.path, self.path / "running", self.path / "logins"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if folder.stat().st_uid != os.geteuid():
                    raise MachineProblem(
                        f"{folder} belongs to another account. Set XDG_STATE_HOME to a folder of yours."
                    )
            handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise MachineProblem(
                f"{self.path} cannot be written: {error.strerror}. Set XDG_STATE_HOME to a folder of yours."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # held for a few small writes only
            yield
        finally:
            os.close(handle)


def _state_home() -> Path:
    named, home = os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", "")
    for place in (named, home and f"{home}/.local/state"):
        if place.startswith("/") and _is_ours(Path(place)):
            return Path(place)
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".local" / "state"
    except KeyError:
        return Path("/nonexistent")  # what accounts without a home have for one: nothing is there, nothing can be


def _is_ours(place: Path) -> bool:
    """Root often has the HOME of the user who became root, and would leave files there that the user cannot change."""
    if os.geteuid() != 0:
        return True
    existing = next(folder for folder in (place, *place.parents) if folder.exists())
    return existing.stat().st_uid == 0


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".json" and not file.name.startswith("."))
    except OSError:  # not made yet, or another account's
        return []


def _object_in(file: Path) -> dict[str, Any] | None:
    text = _read_private(file)
    try:
        value = None if text is None else json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _read_private(file: Path) -> str | None:
    """The text of a file that only this account can read and write; None if there is no such file."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(handle, encoding="utf-8", errors="replace") as opened:
        status = os.fstat(opened.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return None
        return opened.read(100_000)
