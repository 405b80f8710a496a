"""`contextbase servers`, `login` and `logout`: the servers this account knows."""

import getpass
import sys
from typing import Annotated
from urllib.parse import urlsplit

import typer

from contextbase.data_folder import DataFolder
from contextbase.errors import InvalidInput, NotFound, Unavailable
from contextbase.interfaces.cli.connection import Data
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line, print_table
from contextbase.servers.choice import find_data_folder
from contextbase.servers.registry import Login, ServerRegistry
from contextbase.servers.request import check_server, get

__all__ = ["login", "login_url", "logout", "servers"]


@errors_shown
def servers(as_json: Json = False) -> None:
    """List the servers this account knows: those it runs on this machine, and those it logged in to.

    Choose one with --server NAME or CONTEXTBASE_SERVER. The default is used where no server runs in the data folder,
    and outside workspaces."""
    registry = ServerRegistry.of_this_account()
    default, running = registry.default_login(), registry.running()
    only = running[0] if default is None and len(running) == 1 else None
    rows = [
        {"name": login.name, "url": login.url, "kind": "login", "data": None, "default": login == default}
        for login in registry.logins()
    ]
    rows += [
        {"name": local.name, "url": local.url, "kind": "running", "data": str(local.data), "default": local == only}
        for local in running
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("NAME", "URL", "KIND", "DATA", "DEFAULT"),
        ((row["name"], row["url"], row["kind"], row["data"], "yes" if row["default"] else "") for row in rows),
        empty="No servers. Start one: contextbase up. Store another: contextbase login URL",
    )


@errors_shown
def login(
    url: Annotated[
        str | None, typer.Argument(help="The server to store; without one, a browser login is printed.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call it; default: its host.", show_default=False)] = None,
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read the token from standard input; else it is asked for.")
    ] = False,
    default: Annotated[bool, typer.Option("--default", help="Make it the default; the first one always is.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Store a server's URL and a token for it, so that commands find it: contextbase login https://base.example

    The token is checked with the server and kept in a file that only this account can read. Without a URL, print an
    address that logs a browser in as the owner of this machine's server."""
    if url is None:
        if name is not None or token_stdin or default:
            raise InvalidInput("Say which server to store: contextbase login URL")
        _print_browser_login(data, as_json=as_json)
        return
    url = url.rstrip("/")
    check_server(url, "unknown")
    if data is not None:
        raise InvalidInput("--data is for the login of a browser; a server is stored by its URL alone.")
    token = (sys.stdin.readline() if token_stdin else _asked_token(url)).strip()
    if not token:
        raise InvalidInput("No token was given. `contextbase token create` on the server makes one.")
    me = get(url, token, "/api/v1/me")
    stored = Login(name=name or urlsplit(url).netloc.rpartition("@")[2], url=url, token=token)
    registry = ServerRegistry.of_this_account()
    registry.store_login(stored, is_default=default)
    is_default = registry.default_login() == stored
    if as_json:
        print_json({"name": stored.name, "url": url, "principal": me.get("principal"), "default": is_default})
        return
    print_line(f"Stored {stored.name}: {url} as {me.get('principal')}.")
    choice = "It is the default." if is_default else f"Choose it with --server {stored.name}."
    print_line(choice)


@errors_shown
def logout(
    name: Annotated[str, typer.Argument(help="One of `contextbase servers`.")],
    as_json: Json = False,
) -> None:
    """Forget a stored server and its token. The token itself stays valid until it is revoked or expires."""
    if not ServerRegistry.of_this_account().remove_login(name):
        raise NotFound(f"There is no login named {name[:100]!r}. `contextbase servers` lists them.")
    if as_json:
        print_json({"name": name})
    else:
        print_line(f"Forgot {name}.")


def login_url(url: str, secret: str) -> str:
    return f"{url}/login?token={secret}"


def _asked_token(url: str) -> str:
    if not sys.stdin.isatty():
        raise InvalidInput("The token is asked for on a terminal; elsewhere pipe it in with --token-stdin.")
    return getpass.getpass(f"Token for {url}: ")


def _print_browser_login(data: Data, *, as_json: bool) -> None:
    folder = DataFolder(find_data_folder(data))
    server = folder.running_server()
    if server is None:
        raise Unavailable(f"No server runs in {folder.path}. Start one with `contextbase up`.")
    secret = folder.read_owner_token()
    if secret is None:
        raise NotFound(f"There is no owner's token in {folder.path} that this account may read.")
    if as_json:
        print_json({"login_url": login_url(server.url, secret)})
    else:
        typer.echo(login_url(server.url, secret))
