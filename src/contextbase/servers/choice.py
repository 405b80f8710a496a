"""Which server is meant: what is named beats what is found, and what is near beats what is far.

1. --server NAME (or the caller's own choice)
2. CONTEXTBASE_URL and CONTEXTBASE_TOKEN
3. CONTEXTBASE_SERVER
4. the data folder: --data or CONTEXTBASE_DATA, and then no other; else ./.contextbase-data of this account
5. the server whose workspace the current folder is in
6. the default login
7. the one server that this account runs

Files in an agent's folder are not trusted: neither the server nor the data folder is ever read from one.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from contextbase.data_folder import DataFolder, default_data_folder
from contextbase.errors import InvalidInput, MachineProblem, Unauthenticated, Unavailable
from contextbase.servers.registry import LocalServer, ServerRegistry

__all__ = ["FoundServer", "find_data_folder", "find_server", "given_or_found", "workspace_folder"]

_WORKSPACES: Final = Path("node", "workspaces")  # below a data folder: see workspaces/workspace_folders.py


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundServer:
    url: str
    token: str = field(repr=False)
    data: Path | None = None  # of a server on this machine that this account runs


def find_server(name: str | None = None, data: Path | None = None, *, token: str | None = None) -> FoundServer:
    """Raises `Unavailable` with everything that was tried when there is none. `token`: used instead of
    CONTEXTBASE_TOKEN."""
    registry = ServerRegistry.of_this_account()
    if name:
        return _by_name(registry, name)
    url, token = os.environ.get("CONTEXTBASE_URL"), token or os.environ.get("CONTEXTBASE_TOKEN")
    if url is not None:
        if not token:
            raise Unauthenticated("CONTEXTBASE_URL is set, but no token. Set CONTEXTBASE_TOKEN to one for that server.")
        local = next((local for local in registry.running() if local.url == url.rstrip("/")), None)
        return FoundServer(url=url, token=token, data=None if local is None else local.data)
    if name := os.environ.get("CONTEXTBASE_SERVER"):
        return _by_name(registry, name)
    if (named := _named_data(data)) is not None:
        running = DataFolder(named).running_server()
        if running is None:
            raise Unavailable(
                f"No server runs in {named}. Start one with `contextbase up`, or set CONTEXTBASE_URL and "
                "CONTEXTBASE_TOKEN to use another."
            )
        return _owned(LocalServer(url=running.url, data=named), token)
    return _nearby(registry, token)


def given_or_found(url: str | None, token: str | None) -> tuple[str, str]:
    """The URL and token that were given. A missing token is CONTEXTBASE_TOKEN, a missing URL that of the server that is
    found."""
    if url is None:
        found = find_server(token=token)
        return found.url, found.token if token is None else token
    if token is None and not (token := os.environ.get("CONTEXTBASE_TOKEN")):
        raise Unauthenticated(
            "No token is given: pass one, or set CONTEXTBASE_TOKEN. `contextbase token create NAME` prints one."
        )
    return url, token


def find_data_folder(data: Path | None = None) -> Path:
    """The data folder a command on this machine is about: the one named, that of the server in CONTEXTBASE_SERVER if it
    runs here, the one here, the one whose workspace this is, or that of the one server this account runs. It may hold
    nothing."""
    if (named := _named_data(data)) is not None:
        return named
    running = ServerRegistry.of_this_account().running()
    meant = os.environ.get("CONTEXTBASE_SERVER")
    if (chosen := next((local for local in running if local.name == meant), None)) is not None:
        return chosen.data
    here = _default_data()
    if here is not None and DataFolder(here).is_in_use():
        return here
    inside = next((local for local in running if workspace_folder(local.data) is not None), None)
    if inside is not None:
        return inside.data
    if len(running) > 1:
        raise InvalidInput(
            f"Several servers run here: {_listed(running)}. Choose one with --data FOLDER, or set CONTEXTBASE_SERVER."
        )
    if running:
        return running[0].data
    if here is None:
        raise InvalidInput("This folder is a workspace, and its server does not run. Name a data folder with --data.")
    return here


def workspace_folder(data: Path) -> Path | None:
    """The folder of the workspace that we are in, if its server keeps its data there."""
    here = _current_folder()
    workspaces = data.resolve() / _WORKSPACES
    if here is None or workspaces not in here.parents:
        return None
    return workspaces / here.relative_to(workspaces).parts[0]


def _nearby(registry: ServerRegistry, token: str | None) -> FoundServer:
    at_hand = _in_default_data(token)
    if isinstance(at_hand, FoundServer):
        return at_hand
    tried = ["CONTEXTBASE_URL and CONTEXTBASE_SERVER are not set", at_hand]
    running = registry.running()
    for local in running:
        if workspace_folder(local.data) is not None:
            return _owned(local, token)
    tried.append("the current folder is not in a workspace of a server that runs")
    login = registry.default_login()
    if login is not None and token is None:  # a token for another server must not be sent there
        return FoundServer(url=login.url, token=login.token)
    tried.append("there is no default login" if login is None else "a token is given, so the default login is not used")
    if len(running) > 1:
        raise InvalidInput(
            f"Several servers run here: {_listed(running)}. Choose one with --server NAME or --data FOLDER, or set "
            "CONTEXTBASE_SERVER."
        )
    if running:
        return _owned(running[0], token)
    tried.append("this account runs no server")
    raise Unavailable(
        "No server was found. Start one with `contextbase up`, store one with `contextbase login URL`, or set "
        f"CONTEXTBASE_URL and CONTEXTBASE_TOKEN. This is what was tried: {'; '.join(tried)}."
    )


def _in_default_data(token: str | None) -> FoundServer | str:
    """The server of the data folder here, or why there is none."""
    data = _default_data()
    if data is None:
        return "no data folder is looked for in a workspace"
    try:
        running = DataFolder(data).running_server()
    except MachineProblem as error:
        return error.message.rstrip(".")
    if running is None:
        return f"no server runs in the data folder {data}"
    if not DataFolder(data).is_of_this_account():  # whoever made it chose where our token would go
        return f"the data folder {data} is another account's, to be named with --data"
    return _owned(LocalServer(url=running.url, data=data), token)


def _by_name(registry: ServerRegistry, name: str) -> FoundServer:
    login = registry.login(name)
    if login is not None:
        return FoundServer(url=login.url, token=login.token)
    running = registry.running()
    for local in running:
        if local.name == name:
            return _owned(local, None)
    known = [login.name for login in registry.logins()] + [local.name for local in running]
    raise InvalidInput(
        f"There is no server named {name[:100]!r}. {'Known: ' + ', '.join(known) + '. ' if known else ''}"
        "`contextbase login URL --name NAME` stores one."
    )


def _owned(local: LocalServer, token: str | None) -> FoundServer:
    token = token or DataFolder(local.data).read_owner_token()
    if not token:
        raise Unauthenticated(
            f"A server runs in {local.data}, but this account cannot read its owner's token. Set CONTEXTBASE_TOKEN to "
            "a token for it."
        )
    return FoundServer(url=local.url, token=token, data=local.data)


def _named_data(data: Path | None) -> Path | None:
    if data is None and (named := os.environ.get("CONTEXTBASE_DATA")):
        data = Path(named)
    if data is None:
        return None
    try:
        data.exists()
    except PermissionError:
        pass  # whoever opens it says what that means
    except OSError as error:
        raise InvalidInput(f"{str(data)[:100]!r} cannot be a data folder: {error.strerror}.") from error
    return data.absolute()


def _default_data() -> Path | None:
    """None inside any agent's folder: what is there is the agent's, also a thing that looks like a data folder."""
    here = _current_folder()
    if here is None or any(_holds_workspaces(folder) for folder in (here, *here.parents)):
        return None
    return default_data_folder()


def _holds_workspaces(folder: Path) -> bool:
    return folder.parts[-2:] == _WORKSPACES.parts and (folder.parents[1] / "lock").exists()


def _current_folder() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:  # removed while we are in it, as a workspace is when it is complete
        return None


def _listed(running: list[LocalServer]) -> str:
    return ", ".join(f"{local.name} ({local.data})" for local in running)
