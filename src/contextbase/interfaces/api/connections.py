"""How many clients the server holds at once, and how slow they may be."""

import asyncio
import logging
import resource
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge

from contextbase.interfaces.api.problems import problem_response

__all__ = ["TOO_MANY", "ClientLimits", "Connections", "Pace", "SlowClient", "bare_answer", "most_connections"]

_log = logging.getLogger(__name__)

_MOST_OPEN_FILES: Final = 65_536  # some programs walk through every number up to the limit that they inherit


def most_connections() -> int:
    """How many clients there may be: half of the files that this process can open. The other half is for the database,
    blobs, folders and sandboxes. The soft limit is raised to the hard one first."""
    return max(16, _raised_open_files() // 2)


def _raised_open_files() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_OPEN_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # macOS has a limit of its kernel as well
        _log.warning("the limit on open files stays at %d: %s", soft, error)
        return soft
    return wanted


def bare_answer(status: int, code: str, detail: str) -> bytes:
    """A problem as bytes, for a connection on which no request is being answered; it says that the server hangs up."""
    response = problem_response(status, code, detail, headers={"Retry-After": "1", "Connection": "close"})
    head = [f"HTTP/1.1 {status} {code}".encode(), *(name + b": " + value for name, value in response.raw_headers)]
    return b"\r\n".join([*head, b"", bytes(response.body)])


TOO_MANY: Final = bare_answer(
    503, "too_many_connections", "The server has as many connections as it takes; try again in a moment."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientLimits:
    most: int
    timeout_seconds: float  # for a request's headers; also the time over which a rate is measured
    min_bytes_per_second: float


class Pace:
    """Whether bytes move fast enough; to be asked now and then while they are expected to move."""

    __slots__ = ("_moved_before", "_since")

    def __init__(self) -> None:
        self._since: float | None = None
        self._moved_before = 0

    def is_too_slow(self, now: float, moved: int, limits: ClientLimits) -> bool:
        """`moved`: how many bytes have moved so far."""
        if self._since is None:
            self._since, self._moved_before = now, moved
            return False
        elapsed = now - self._since
        if elapsed < limits.timeout_seconds:
            return False
        is_slow = moved - self._moved_before < limits.min_bytes_per_second * elapsed
        self._since, self._moved_before = now, moved
        return is_slow

    def rest(self) -> None:
        """No bytes are expected to move."""
        self._since = None


class SlowClient(Protocol):
    """A connection that can be too slow."""

    def check(self, now: float) -> None:
        """Close the connection if its client is too slow."""

    def displace(self) -> None:
        """Close the connection to make room for another one."""


class Connections:
    """The connections of one server: how many there may be, and which of them can go."""

    def __init__(self, limits: ClientLimits, registry: CollectorRegistry) -> None:
        self.limits = limits
        self.opened: Collection[asyncio.Protocol] = ()  # uvicorn's set, which has web sockets too
        self._clients: set[SlowClient] = set()
        self._silent: dict[SlowClient, None] = {}  # those that have not sent a request yet, oldest first
        self._closed = Counter(
            "contextbase_http_connections_closed",
            "Connections that the server closed or refused because of a limit.",
            ["reason"],
            registry=registry,
        )
        opened = Gauge("contextbase_http_connections", "Open connections.", registry=registry)
        opened.set_function(lambda: len(self.opened))

    def add(self, client: SlowClient) -> None:
        self._clients.add(client)
        self._silent[client] = None

    def has_sent_request(self, client: SlowClient) -> None:
        self._silent.pop(client, None)

    def remove(self, client: SlowClient) -> None:
        self._clients.discard(client)
        self._silent.pop(client, None)

    def check(self, now: float) -> None:
        for client in list(self._clients):
            client.check(now)

    def make_room(self, *, coming: int) -> bool:
        """Whether one more may come. Of the connections that never sent a request the oldest goes if need be."""
        if len(self.opened) + coming < self.limits.most:
            return True
        oldest = next(iter(self._silent), None)
        if oldest is None:
            self.count_closed("too_many")
            return False
        self.remove(oldest)
        self.count_closed("displaced")
        oldest.displace()
        return True

    def count_closed(self, reason: str) -> None:
        self._closed.labels(reason).inc()
