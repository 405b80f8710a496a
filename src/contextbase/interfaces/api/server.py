"""Runs the API, a machine, or both until a signal: binds first, opens the services, serves, closes all in order."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from contextbase.bootstrap import EVERY_ROLE, CoreServices, MachineRole, ProcessRole, Services, open_services
from contextbase.chores import ChoreRunner
from contextbase.config import Settings
from contextbase.data_folder import RunningServer
from contextbase.errors import MachineProblem
from contextbase.interfaces.api.app import create_app
from contextbase.interfaces.api.connections import ClientLimits, Connections, most_connections
from contextbase.interfaces.api.forwarding.sent_on import Forwarder
from contextbase.interfaces.api.forwarding.taken_over import from_servers_alone
from contextbase.interfaces.api.http_server import HttpServer
from contextbase.interfaces.api.listeners import bind, machine_listener, require_shared, url_of
from contextbase.servers.registry import ServerRegistry

__all__ = ["serve", "serve_machine"]

_log = logging.getLogger(__name__)


async def serve(
    settings: Settings,
    *,
    is_machine: bool = True,
    on_step: Callable[[str], None],
    on_ready: Callable[[str, str], None],
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` gets the URL, and one that logs a browser in as the owner, once.
    Without `is_machine` the workspaces are on other machines.

    A SIGTERM before that cancels the start: `CancelledError`, when all that was started is stopped."""
    if not is_machine:
        require_shared(settings, "A server that is no machine")
    _prepare_process()
    roles = EVERY_ROLE if is_machine else frozenset({ProcessRole.SERVER})
    with bind(settings.server.host, settings.server.port) as listener:
        url = settings.server.public_url or url_of(listener, settings.server.host)
        async with (
            open_services(settings, roles=roles, own=True, on_step=on_step) as services,
            _opened_forwarder(services) as forwarder,
        ):
            core = services.core
            await _ensure_owner(core)
            core.data.announce(RunningServer(url=url_of(listener, settings.server.host), process_id=os.getpid()))
            try:
                app = create_app(services, forwarder)
                server = HttpServer(app, settings, Connections(_client_limits(settings), core.metrics))
                login_url = f"{url}/login?code={app.state.login_codes.make()}"
                server.on_started = lambda: on_ready(url, login_url)
                server.on_stopping = partial(_send_home, core)
                _look_for_garbage_less()
                async with _machine_served(services, app), _done_meanwhile(services.chores):
                    with _remembered(core.data.path):
                        await server.serve(sockets=[listener])
            finally:
                core.data.withdraw()


async def serve_machine(
    settings: Settings, *, on_step: Callable[[str], None], on_ready: Callable[[str, str], None]
) -> None:
    """Be a machine until SIGINT or SIGTERM. `on_ready` gets its name, and where other servers reach it."""
    require_shared(settings, "A machine")
    _prepare_process()
    with machine_listener(settings) as (listener, address):
        async with (
            open_services(settings, roles=frozenset({ProcessRole.MACHINE}), own=True, on_step=on_step) as services,
            _opened_forwarder(services) as forwarder,
        ):
            role = _role_of(services)
            server = _inner_server(settings, create_app(services, forwarder), handles_signals=True)
            server.on_started = lambda: on_ready(role.presence.name, address)
            server.on_stopping = partial(_send_home, services.core)
            _look_for_garbage_less()
            await role.start(address)
            async with _done_meanwhile(services.chores):
                await server.serve(sockets=[listener])


@contextlib.asynccontextmanager
async def _opened_forwarder(services: Services) -> AsyncIterator[Forwarder | None]:
    """None with an embedded database: there are no other machines."""
    if services.core.settings.database.url is None:
        yield None
        return
    forwarder = Forwarder(machines=services.core.machines, signer=services.signer)
    try:
        yield forwarder
    finally:
        await forwarder.close()


@contextlib.asynccontextmanager
async def _machine_served(services: Services, app: FastAPI) -> AsyncIterator[None]:
    """If this process is a machine, it is registered; and if others may share its database, they reach it."""
    settings, role = services.core.settings, services.machine
    if role is None:
        yield
    elif settings.database.url is None:
        await role.start(None)
        yield
    else:
        with machine_listener(settings) as (listener, address):
            async with _inner_server(settings, app, handles_signals=False).meanwhile(listener):
                await role.start(address)
                yield


def _inner_server(settings: Settings, app: FastAPI, *, handles_signals: bool) -> HttpServer:
    """For what other servers send on. Its clients are not counted among the server's."""
    connections = Connections(_client_limits(settings), CollectorRegistry())
    return HttpServer(from_servers_alone(app), settings, connections, handles_signals=handles_signals)


def _role_of(services: Services) -> MachineRole:
    if services.machine is None:
        raise ValueError("the services were opened without the role of a machine")
    return services.machine


def _prepare_process() -> None:
    starting = asyncio.current_task()
    if starting is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, starting.cancel)
    _leave_out_what_no_log_line_shows()


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


async def _ensure_owner(core: CoreServices) -> None:
    stored = core.data.read_owner_token()
    secret = await core.identity.ensure_owner(stored)
    if secret is not None:
        core.data.write_owner_token(secret)
