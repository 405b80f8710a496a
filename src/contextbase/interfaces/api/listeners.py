"""Listening sockets, and the addresses they have."""

import contextlib
import errno
import ipaddress
import socket
from collections.abc import Iterator

from contextbase.config import Settings
from contextbase.errors import InvalidSettings, MachineProblem

__all__ = ["bind", "machine_listener", "require_shared", "url_of"]


@contextlib.contextmanager
def bind(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket, or a `MachineProblem` that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise MachineProblem(_why_not(error, host, port)) from error
        except (TypeError, ValueError) as error:  # not even a name: a part that is too long, a NUL
            raise InvalidSettings(f"The setting 'host' is wrong: {host[:120]!r} is not an address.") from error
        yield listener
    finally:
        listener.close()


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken. Stop what uses it, or choose another with --port (0: any free one)."
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights than this account has; choose one above 1023 with --port."
    return f"Cannot listen on {host}:{port}: {error.strerror or error}."


def url_of(listener: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def machine_listener(settings: Settings) -> Iterator[tuple[socket.socket, str]]:
    """Where this machine takes what other servers send on, and the address they reach it by."""
    host, given = settings.machine.machine_host, settings.machine.machine_address
    if given is None and _is_everywhere(host):
        raise InvalidSettings(
            f"The machine listens on {host}, which is not an address that other servers can connect to: set "
            "CONTEXTBASE_MACHINE_ADDRESS to the URL by which they reach it."
        )
    with bind(host, settings.machine.machine_port) as listener:
        yield listener, given or url_of(listener, host)


def require_shared(settings: Settings, who: str) -> None:
    """Raise `InvalidSettings` unless other processes can see the same database and blobs."""
    if settings.database.url is None:
        raise InvalidSettings(f"{who} shares its database with others: set CONTEXTBASE_DATABASE_URL.")
    if settings.storage.blob_location.bucket is None:
        raise InvalidSettings(f"{who} shares its blobs with others: set CONTEXTBASE_BLOBS=s3://bucket/prefix.")
    if settings.audit.key is None:
        raise InvalidSettings(
            f"{who} shares its audit trail with others: set CONTEXTBASE_AUDIT_KEY to the same secret everywhere."
        )


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
