"""Runs the API until a signal: binds first, opens the services, serves, closes everything in order."""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from contextbase.bootstrap import CoreServices, open_services
from contextbase.chores import ChoreRunner
from contextbase.config import Settings
from contextbase.data_folder import RunningServer
from contextbase.errors import InvalidSettings, MachineProblem
from contextbase.interfaces.api.acceptor import Acceptor
from contextbase.interfaces.api.app import create_app
from contextbase.interfaces.api.connections import ClientLimits, Connections, most_connections
from contextbase.interfaces.api.protocol import LimitedHttp
from contextbase.servers.registry import ServerRegistry

__all__ = ["serve"]

_log = logging.getLogger(__name__)


async def serve(
    settings: Settings,
    *,
    on_step: Callable[[str], None],
    on_ready: Callable[[str, str], None],
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` gets the URL, and one that logs a browser in as the owner, once.

    A SIGTERM before that cancels the start: `CancelledError`, when all that was started is stopped."""
    starting = asyncio.current_task()
    if starting is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, starting.cancel)
    _leave_out_what_no_log_line_shows()
    limits = _client_limits(settings)
    with bind(settings.server.host, settings.server.port) as listener:
        url = settings.server.public_url or _url_of(listener, settings.server.host)
        async with open_services(settings, own=True, on_step=on_step) as services:
            core = services.core
            await _ensure_owner(core)
            core.data.announce(RunningServer(url=_url_of(listener, settings.server.host), process_id=os.getpid()))
            try:
                app = create_app(services)
                server = _Server(app, settings, Connections(limits, core.metrics))
                login_url = f"{url}/login?code={app.state.login_codes.make()}"
                server.on_started = lambda: on_ready(url, login_url)
                server.on_stopping = partial(_send_home, core)
                _look_for_garbage_less()
                async with _done_meanwhile(services.chores):
                    with _remembered(core.data.path):
                        await server.serve(sockets=[listener])
            finally:
                core.data.withdraw()


def _client_limits(settings: Settings) -> ClientLimits:
    derived = most_connections()
    return ClientLimits(
        most=settings.server.max_connections or derived,
        timeout_seconds=settings.server.client_timeout_seconds,
        min_bytes_per_second=settings.server.client_min_bytes_per_second,
    )


@contextlib.asynccontextmanager
async def _done_meanwhile(chores: ChoreRunner) -> AsyncIterator[None]:
    """Chores go on while the block lasts."""

    async def keep() -> None:
        try:
            await chores.run()
        except Exception:  # noqa: BLE001 - a fault of ours, and no reason to stop serving
            _log.exception("no chore is done any more; restart the server")

    keeping = asyncio.create_task(keep(), name="chores")
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


@contextlib.contextmanager
def _remembered(data: Path) -> Iterator[None]:
    """Commands of this account find the server from any folder. Where nothing can be stored, they need --data."""
    registry = ServerRegistry.of_this_account()
    try:
        registry.remember(data)
    except MachineProblem as error:
        _log.warning("commands find this server only with --data", extra={"reason": error.message})
        yield
        return
    try:
        yield
    finally:
        try:
            registry.forget(data)
        except MachineProblem as error:  # harmless: the data folder shows that nothing runs
            _log.warning("this server is still listed", extra={"reason": error.message})


def _send_home(core: CoreServices) -> None:
    """Those who wait: streams have no end of their own, and a lease may not be free for long."""
    core.feed.end()
    core.streams.end()
    core.leases.end()


def _look_for_garbage_less() -> None:
    """What is here now stays, and need not be looked through again and again; what comes leaves by itself, mostly."""
    gc.freeze()
    gc.set_threshold(20_000)


def _leave_out_what_no_log_line_shows() -> None:
    """Thread, process and place in the code: to find them out takes `logging` as long as the rest of a line."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - the documented way


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


def _url_of(listener: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


async def _ensure_owner(core: CoreServices) -> None:
    stored = core.data.read_owner_token()
    secret = await core.identity.ensure_owner(stored)
    if secret is not None:
        core.data.write_owner_token(secret)


class _Server(uvicorn.Server):
    """uvicorn with our own signal handling: its own re-raises the signal before the database could be stopped."""

    def __init__(self, app: FastAPI, settings: Settings, connections: Connections) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                http=partial(LimitedHttp, connections=connections),  # type: ignore[arg-type]  # it makes one
                # Only behind a proxy: otherwise anyone on this machine could write any origin into the audit trail.
                proxy_headers=settings.server.public_url is not None,
                lifespan="off",
                ws="websockets-sansio",
                ws_max_size=1 << 20,
                timeout_graceful_shutdown=round(settings.server.shutdown_grace_seconds),
                timeout_keep_alive=30,
            )
        )
        self._connections = connections
        self._connections.opened = self.server_state.connections
        self._checked_at = 0.0
        self.on_started: Callable[[], None] = lambda: None
        self.on_stopping: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, lambda: None)  # the database is being stopped: let it

    def _on_signal(self) -> None:
        # The second signal cuts running requests short; the database is still stopped properly.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = [Acceptor(listener, self._connections, self._protocol) for listener in sockets or ()]  # type: ignore[misc]  # all that uvicorn asks of one
        self.started = True
        self.on_started()

    def _protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn calls it
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def on_tick(self, counter: int) -> bool:
        loop = asyncio.get_running_loop()
        if loop.time() - self._checked_at > min(1.0, self._connections.limits.timeout_seconds / 4):
            self._checked_at = loop.time()
            loop.call_soon(self._connections.check, self._checked_at)  # an error there must not end the server
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.on_stopping()
        await super().shutdown(sockets)
