"""The way out of a sandbox: real programs, real servers on this machine, which tests alone may reach."""

import asyncio
import contextlib
import datetime as dt
import functools
import io
import ipaddress
import json
import os
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.scripted_model import SocketStream

from contextbase.errors import InvalidInput
from contextbase.ids import ProjectId
from contextbase.models.addresses import AddressChecker
from contextbase.models.egress.policy import AllowedHosts, checked_host
from contextbase.models.egress.proxy import EgressLimits, EgressProxy, EgressReport


class Hosts:
    def __init__(self, *names: str) -> None:
        self._allowed = AllowedHosts.of(names)

    async def allowed(self, project_id: ProjectId) -> AllowedHosts:
        del project_id
        return self._allowed


class Way:
    """A proxy that listens, and what it reported."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.reports: list[EgressReport] = []

    @property
    def outcomes(self) -> list[str]:
        return [f"{report.host} {report.outcome}" for report in self.reports]

    async def run(self, *command: str, **variables: str) -> tuple[int, str]:
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "http_proxy": self.url, "https_proxy": self.url}
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode(errors="replace")


@contextlib.asynccontextmanager
async def way_out(*hosts: str, is_for_tests: bool = True, limits: EgressLimits | None = None) -> AsyncIterator[Way]:
    proxy = EgressProxy(hosts=Hosts(*hosts), checker=AddressChecker(allow_loopback=is_for_tests), limits=limits)
    tasks: set[asyncio.Task[None]] = set()

    async def report(each: EgressReport) -> None:
        way.reports.append(each)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await proxy.serve(SocketStream(reader, writer), ProjectId(uuid4()), report)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    way = Way(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield way
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def files_at(folder: Path, certificate: Path | None = None) -> Iterator[int]:
    """A web server of a folder; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("certificate") / "both.pem"
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(private + made.public_bytes(pem))
    return file


async def test_curl_gets_pages_by_http_and_https(tmp_path: Path, certificate: Path) -> None:
    (tmp_path / "page").write_text("hello from outside")
    with files_at(tmp_path) as port, files_at(tmp_path, certificate) as tls:
        async with way_out(f"localhost:{port}", f"localhost:{tls}") as way:
            assert await way.run("curl", "-sS", f"http://localhost:{port}/page") == (0, "hello from outside")
            secure = await way.run("curl", "-sS", "--cacert", str(certificate), f"https://localhost:{tls}/page")
            assert secure == (0, "hello from outside")
    assert way.outcomes == ["localhost connected"] * 2


async def test_git_clones(tmp_path: Path) -> None:
    def git(*arguments: str, at: Path) -> None:
        fixed = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *fixed, *arguments], cwd=at, check=True, capture_output=True)

    source = tmp_path / "source"
    source.mkdir()
    git("init", at=source)
    (source / "file").write_text("from git")
    git("add", ".", at=source)
    git("commit", "-m", "first", at=source)
    git("clone", "--bare", "source", "web.git", at=tmp_path)
    git("update-server-info", at=tmp_path / "web.git")
    with files_at(tmp_path) as port:
        async with way_out(f"localhost:{port}") as way:
            target = tmp_path / "clone"
            code, output = await way.run("git", "clone", f"http://localhost:{port}/web.git", str(target))
    assert code == 0, output
    assert (target / "file").read_text() == "from git"
    assert way.outcomes


async def test_pip_installs(tmp_path: Path) -> None:
    folder = tmp_path / "web" / "simple" / "tiny"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "x = 1\n")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    (folder / "index.html").write_text('<a href="tiny-1-py3-none-any.whl">tiny-1-py3-none-any.whl</a>')
    with files_at(tmp_path / "web") as port:
        async with way_out(f"localhost:{port}") as way:
            index = ("--index-url", f"http://localhost:{port}/simple", "--trusted-host", "localhost")
            where = ("--target", str(tmp_path / "site"), "--no-cache-dir", "--disable-pip-version-check")
            code, output = await way.run(
                sys.executable,
                "-m",
                "pip",
                "install",
                *index,
                *where,
                "tiny",
                HOME=str(tmp_path),
                PIP_CONFIG_FILE="/dev/null",
            )
    assert code == 0, output
    assert (tmp_path / "site" / "tiny.py").exists()
    assert way.outcomes


async def test_npm_installs(tmp_path: Path) -> None:
    web = tmp_path / "web"
    web.mkdir()
    described = {"name": "tiny", "version": "1.0.0"}
    with tarfile.open(web / "tiny.tgz", "w:gz") as package:
        content = json.dumps(described).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        package.addfile(entry, io.BytesIO(content))
    with files_at(web) as port:
        tarball = {"dist": {"tarball": f"http://localhost:{port}/tiny.tgz"}}
        document = {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": described | tarball}}
        (web / "tiny").write_text(json.dumps(document))
        async with way_out(f"localhost:{port}") as way:
            where = ("--prefix", str(tmp_path / "site"), "--registry", f"http://localhost:{port}/", "--no-audit")
            code, output = await way.run("npm", "install", *where, "--no-update-notifier", "tiny", HOME=str(tmp_path))
    assert code == 0, output
    assert (tmp_path / "site" / "node_modules" / "tiny" / "package.json").exists()
    assert way.outcomes


async def test_what_is_not_listed_is_refused_and_reported(tmp_path: Path) -> None:
    with files_at(tmp_path) as port:
        async with way_out("example.com") as way:
            for url in (f"http://localhost:{port}/", f"https://localhost:{port}/"):
                code, output = await way.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}%{http_connect}", url)
                assert "403" in output, (code, output)
    assert way.outcomes == ["localhost refused"] * 2


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "169.254.169.254", "10.0.0.1", "0.0.0.0", "[::1]"])  # noqa: S104
async def test_an_allowed_name_that_leads_inside_is_refused(tmp_path: Path, host: str) -> None:
    with files_at(tmp_path) as port:
        async with way_out(f"{host.strip('[]')}:{port}", is_for_tests=False) as way:
            _, output = await way.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://{host}:{port}/")
    assert output == "403"
    assert [report.outcome for report in way.reports] == ["refused"]


async def test_a_host_that_is_down_is_unreachable() -> None:
    async with way_out("localhost:1") as way:
        _, output = await way.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://localhost:1/")
    assert output == "502"
    assert way.outcomes == ["localhost unreachable"]


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT localhost HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT user@localhost:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT localhost:99999 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET ftp://localhost/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET https://localhost/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET http://localhost/ HTTP/1.1\r\nA: " + b"x" * 100_000,
    ],
    ids=["no port", "a user", "a port too high", "no host", "ftp", "https", "tls", "long"],
)
async def test_a_bad_head_is_refused(head: bytes) -> None:
    async with way_out("localhost") as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(way.url.rpartition(":")[2]))
        writer.write(head)
        assert b" 400 " in await reader.readline()
        writer.close()
    assert way.reports == []


async def test_a_connection_ends_at_its_limits(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1_000_000)
    with files_at(tmp_path) as port:
        async with way_out(f"localhost:{port}", limits=EgressLimits(all_bytes=100_000)) as way:
            code, _ = await way.run("curl", "-sS", "-o", "/dev/null", f"http://localhost:{port}/large")
            assert code != 0
        async with way_out(f"localhost:{port}", limits=EgressLimits(idle_seconds=0.05)) as way:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(way.url.rpartition(":")[2]))
            writer.write(b"CONNECT localhost:%d HTTP/1.1\r\nHost: x\r\n\r\n" % port)
            assert b" 200 " in await reader.readline()
            while await reader.read(1000):
                pass
            writer.close()


def test_presets_names_and_ports() -> None:
    allowed = AllowedHosts.of(["preset:pip", "*.example.com", "example.org:8443"])
    assert allowed.allows("PyPI.org.", 443)
    assert allowed.allows("a.b.example.com", 80)
    assert allowed.allows("example.org", 8443)
    assert not allowed.allows("example.com", 443)
    assert not allowed.allows("evilexample.com", 443)
    assert not allowed.allows("example.org", 443)
    assert not allowed.allows("pypi.org", 22)


async def test_what_is_no_host_cannot_be_listed() -> None:
    for host in ("", "a b", "http://a", "*", "a/b", "preset:none", "-a", "a..b", "x" * 300):
        with pytest.raises(InvalidInput):
            checked_host(host)
