"""`contextbase mcp`: JSON lines on standard input and output, HTTP to the server. Knows the protocol only as far as it
must, and imports the standard library alone: agent programs wait for it at each start."""

import base64
import contextlib
import http.client
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from contextbase.errors import ContextbaseError, Unavailable
from contextbase.servers.choice import FoundServer
from contextbase.servers.request import check_server

__all__ = ["Bridge", "run_bridge"]

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_SAFE_HEADER: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 330.0  # no client waits longer for a call
_MOST_IDLE: Final = 8
_MOST_AT_ONCE: Final = 64
_SERVER_ERROR: Final = -32000
_PARSE_ERROR: Final = -32700
_TRIES: Final = 3
_LISTEN: Final = "subscriptions/listen"

Message = dict[str, Any]


class Bridge:
    """Each request has a thread of its own while it lasts. Connections are kept open and used again."""

    def __init__(
        self, find: Callable[[], FoundServer], headers: dict[str, str], reads: BinaryIO, writes: BinaryIO
    ) -> None:
        """`find` is asked again when the server is not where it was: it may have been restarted."""
        self._find = find
        self._headers = headers
        self._reads = reads
        self._writes = writes
        self._server = find()
        check_server(self._server.url, self._server.token)
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._running: dict[str, _Running] = {}
        self._version: str | None = None  # agreed on in a handshake; later clients say it in each request
        self._slots = threading.Semaphore(_MOST_AT_ONCE)

    def run(self) -> None:
        """Until standard input ends; then what was asked is still answered."""
        for line in self._reads:
            if line.strip():
                self._take(line)
        with self._lock:
            waiting = [running for running in self._running.values() if running.method != _LISTEN]
        for running in waiting:
            if running.thread is not None:
                running.thread.join(_ANSWER_SECONDS)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._write(_error(None, _PARSE_ERROR, "This line is not JSON."))
            return
        if not isinstance(message, dict):
            self._write(_error(None, -32600, "Send one JSON-RPC message in a line."))
            return
        method, request_id = message.get("method"), message.get("id")
        if method == "notifications/cancelled":
            params = message.get("params")
            self._cancel(params.get("requestId") if isinstance(params, dict) else None)
        if not isinstance(method, str) or request_id is None:
            return  # notifications and answers: the server keeps no session that they could be about
        running = _Running(method)
        with self._lock:
            self._running[_key(request_id)] = running
        self._slots.acquire()
        running.thread = threading.Thread(target=self._answer, args=(message, line, running), daemon=True)
        running.thread.start()

    def _answer(self, message: Message, line: bytes, running: "_Running") -> None:
        request_id = message["id"]
        try:
            for answer in self._asked(message, line, running):
                if running.is_cancelled:
                    break
                self._learn(message, answer)
                self._write(answer)
        except ContextbaseError as error:
            if not running.is_cancelled:
                self._write(_error(request_id, _SERVER_ERROR, error.message))
        finally:
            with self._lock:
                self._running.pop(_key(request_id), None)
            self._slots.release()

    def _asked(self, message: Message, line: bytes, running: "_Running") -> Iterator[bytes]:
        headers = self._headers | self._protocol_headers(message)
        response, connection = self._sent(line, headers, running)
        is_whole = False
        try:
            if response.headers.get_content_type() == "text/event-stream":
                yield from _events(response)
                return
            body = response.read()
            is_whole = True
            if response.status >= 400 and not body.startswith(b'{"jsonrpc"'):
                raise Unavailable(_told(response.status, body))
            if body:
                yield body
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable("The connection to the contextbase server was lost. Call again.") from error
        finally:
            self._give_back(connection, is_reusable=is_whole and not response.will_close)

    def _sent(
        self, line: bytes, headers: dict[str, str], running: "_Running"
    ) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        """An idle connection may have been closed, and the server restarted: then it is sent again. What the server
        may have begun to do is not."""
        failed: Exception | None = None
        for attempt in range(_TRIES):
            connection = self._connection(is_new=attempt > 0)
            running.connection, was_used = connection, connection.sock is not None
            try:
                if not was_used:
                    connection.connect()
                    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                failed, self._server = error, self._find()
                continue
            try:
                connection.sock.settimeout(None if running.method == _LISTEN else _ANSWER_SECONDS)
                target = urlsplit(self._server.url).path.rstrip("/") + "/mcp"
                token = {"Authorization": f"Bearer {self._server.token}"}
                connection.request("POST", target, body=line, headers=headers | token)
                return connection.getresponse(), connection
            except (OSError, http.client.HTTPException) as error:
                failed = error
                connection.close()
                if running.is_cancelled or not (was_used and isinstance(error, ConnectionError)):
                    break
        raise Unavailable(
            f"The contextbase server at {self._server.url} does not answer. Start it with `contextbase up`."
        ) from failed

    def _connection(self, *, is_new: bool) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle and not is_new:
                return self._idle.pop()
        address = urlsplit(self._server.url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        return kind(address.hostname or "", address.port, timeout=_CONNECT_SECONDS)

    def _give_back(self, connection: http.client.HTTPConnection, *, is_reusable: bool) -> None:
        with self._lock:
            if is_reusable and connection.sock is not None and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _protocol_headers(self, message: Message) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        method = message["method"]
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        meta = params.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if isinstance(version, str):
            headers |= {"MCP-Protocol-Version": _in_header(version), "Mcp-Method": _in_header(method)}
            name = params.get(_NAMED_BY.get(method, ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = _in_header(name)
        elif self._version is not None:
            headers["MCP-Protocol-Version"] = self._version
        return headers

    def _learn(self, message: Message, answer: bytes) -> None:
        """The version that a handshake came to."""
        if message["method"] != "initialize":
            return
        with contextlib.suppress(ValueError, AttributeError):
            version = json.loads(answer).get("result", {}).get("protocolVersion")
            if isinstance(version, str):
                self._version = _in_header(version)

    def _cancel(self, request_id: Any) -> None:
        """The server ends what it does for a connection that is closed. Nothing is answered then."""
        with self._lock:
            running = self._running.get(_key(request_id))
        if running is not None:
            running.cancel()

    def _write(self, answer: bytes) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._writes.write(answer.replace(b"\n", b" ") + b"\n")
            self._writes.flush()


class _Running:
    def __init__(self, method: str) -> None:
        self.method = method
        self.thread: threading.Thread | None = None
        self.connection: http.client.HTTPConnection | None = None
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        sock = None if self.connection is None else self.connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it


def run_bridge(find: Callable[[], FoundServer], headers: dict[str, str]) -> None:
    """On this process's own input and output, and then it ends."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    Bridge(find, headers, sys.stdin.buffer, output).run()
    output.close()
    os._exit(0)  # streams may still be open, and nobody reads them


def _events(response: http.client.HTTPResponse) -> Iterator[bytes]:
    for line in response:
        if line.startswith(b"data:") and (data := line[5:].strip()):
            yield data


def _told(status: int, body: bytes) -> str:
    try:
        answer = json.loads(body)
        return str(answer.get("detail") or f"The server answered {status}.")
    except (ValueError, AttributeError):
        return f"The server answered {status}, and not as contextbase does. Is the URL right?"


def _error(request_id: Any, code: int, message: str) -> bytes:
    body = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
    return json.dumps(body).encode()


def _key(request_id: Any) -> str:
    """1 and "1" are two ids."""
    return json.dumps(request_id)


def _in_header(value: str) -> str:
    """As the protocol writes what a header cannot hold."""
    if _SAFE_HEADER.fullmatch(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="
