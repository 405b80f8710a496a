"""Where an app's files are in its tree: the keys that people and other systems know, as paths. Pure.

A key is `app/{app}/…`; the part after the app's name is the path in the app's own tree.
"""

import re
from dataclasses import dataclass
from typing import Final

from contextbase.errors import InvalidInput
from contextbase.ids import TreePath

__all__ = ["DEFAULT_PROJECT", "AppPlace", "auth_key_of", "check_app_name", "check_app_project", "path_of_key"]

DEFAULT_PROJECT: Final = "default"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,49}")
_PROJECT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LOGIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_KB: Final = "kb"


def check_app_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput("An app's name has 1 to 50 of a-z, 0-9 and ._- and starts with a letter or digit.")
    return name


def check_app_project(name: str | None) -> str:
    """The name of an app's project; nothing, or blanks, is `default`."""
    plain = (name or "").strip() or DEFAULT_PROJECT
    if not _PROJECT.fullmatch(plain):
        raise InvalidInput("The name of an app's project has 1 to 100 letters, digits or ._-")
    return plain


@dataclass(frozen=True, kw_only=True, slots=True)
class AppPlace:
    """Whose files, in which project of which app. Checked when it is built, so that no name reaches into another's."""

    app: str
    project: str = DEFAULT_PROJECT
    login: str | None = None

    def __post_init__(self) -> None:
        check_app_name(self.app)
        if not _PROJECT.fullmatch(self.project):
            raise InvalidInput("The name of an app's project has 1 to 100 letters, digits or ._-")
        if self.login is not None and (not _LOGIN.fullmatch(self.login) or self.login == _KB):
            raise InvalidInput(f"{self.login[:120]!r} cannot be the name of a user's folder.")

    @property
    def app_kb(self) -> TreePath:
        return TreePath(_KB)

    @property
    def project_kb(self) -> TreePath:
        return TreePath(f"project/{self.project}/{_KB}")

    @property
    def user(self) -> TreePath:
        if self.login is None:
            raise ValueError("This place has no user.")
        return TreePath(f"project/{self.project}/{self.login}")

    @property
    def user_files(self) -> TreePath:
        return TreePath(f"{self.user}/files")

    def workspace(self, session: str) -> TreePath:
        return TreePath(f"{self.user}/session/{session}/workspace")

    def key(self, path: TreePath) -> str:
        return f"app/{self.app}/{path}"

    def prefix(self, path: TreePath) -> str:
        """The key of a folder, as other systems write it: with '/' at its end."""
        return f"{self.key(path)}/"


def path_of_key(app: str, key: str) -> TreePath:
    """The path in the app's tree. Raises `InvalidInput` for a key of another app."""
    own = f"app/{app}/"
    if not key.startswith(own):
        raise InvalidInput(f"{key[:200]!r} is not a key of the app '{app}': those begin with {own}")
    return TreePath(key.removeprefix(own).rstrip("/"))


def auth_key_of(path: TreePath) -> bool:
    """Whether a path is kept for secrets (`project/{p}/{user}/auth/…`), which are in no tree and no sandbox."""
    parts = path.split("/")
    return len(parts) >= 4 and parts[0] == "project" and parts[3] == "auth"
