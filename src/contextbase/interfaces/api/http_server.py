"""uvicorn as we use it: our own signals, limits on clients, and a listening socket that survives a lack of files."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from contextbase.config import Settings
from contextbase.interfaces.api.acceptor import Acceptor
from contextbase.interfaces.api.connections import Connections
from contextbase.interfaces.api.protocol import LimitedHttp

__all__ = ["HttpServer"]


class HttpServer(uvicorn.Server):
    """uvicorn with our own signal handling: its own re-raises the signal before the database could be stopped."""

    def __init__(
        self, app: ASGIApp, settings: Settings, connections: Connections, *, handles_signals: bool = True
    ) -> None:
        """Without `handles_signals` whoever runs it says when it is to end."""
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
        self._handles_signals = handles_signals
        self.on_started: Callable[[], None] = lambda: None
        self.on_stopping: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if not self._handles_signals:
            yield
            return
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

    @contextlib.asynccontextmanager
    async def meanwhile(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve as long as the block lasts."""
        serving = asyncio.create_task(self.serve(sockets=[listener]), name="machine-listener")
        try:
            yield
        finally:
            self.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)
