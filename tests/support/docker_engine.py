"""A real Docker engine for tests: in a folder of its own, without a network, with an image made of this machine's
programs, because there is no registry to get one from."""

import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
from tests.support.require import require_program, require_root

__all__ = ["DockerEngine", "running_docker_engine"]

_HOW_TO_GET = "sudo apt-get install docker.io"
_START_SECONDS = 600  # on a machine that does ten other things
_STOP_SECONDS = 60
_IMAGE = "contextbase-test-agent:latest"
_PROGRAMS = (
    *("sh", "bash", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dmesg", "echo", "env", "false", "find"),
    *("grep", "head", "id", "kill", "ln", "ls", "mkdir", "mkfifo", "mknod", "mktemp", "mount", "mv", "nohup", "nproc"),
    *("nsenter", "printf", "ps", "pwd", "readlink", "rm", "sed", "seq", "setsid", "sleep", "sort", "stat", "stty"),
    *("su", "sync", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "truncate", "umount", "uname"),
    *("unshare", "wc", "whoami", "yes"),
)
_FOR_AGENT_PROGRAMS = ("libdl.so.2", "libpthread.so.0", "librt.so.1")
_NOT_NEEDED = {"dist-packages", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tkinter"}
_FOLDERS = {"tmp": 0o1777, "var/tmp": 0o1777, "home/agent": 0o755, "workspace": 0o755, "run": 0o755, "etc": 0o755}
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerEngine:
    address: str
    image: str = _IMAGE

    @property
    def socket(self) -> str:
        return self.address.removeprefix("unix://")

    def client(self) -> httpx.Client:
        """To ask the engine past the code that is tested."""
        return httpx.Client(
            transport=httpx.HTTPTransport(uds=self.socket), base_url="http://docker", timeout=_START_SECONDS
        )

    def containers(self, name: str) -> list[dict[str, Any]]:
        """What the engine says of each container that has this in its name."""
        with self.client() as client:
            listed = client.get("/containers/json", params={"all": "1"}).raise_for_status().json()
            ids = [container["Id"] for container in listed if name in container["Names"][0]]
            return [client.get(f"/containers/{each}/json").raise_for_status().json() for each in ids]

    def image_with(self, files: Mapping[str, Path], name: str) -> str:
        """The engine's own image and these files, by their paths inside, as another image: a Dockerfile's COPY."""
        with self.client() as client, tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for path, source in files.items():
                    _add_file(archive, str(source), path.lstrip("/"))
            packed.seek(0)
            made = client.post("/containers/create", json={"Image": self.image, "Cmd": ["true"]}).raise_for_status()
            container = made.json()["Id"]
            placed = client.put(f"/containers/{container}/archive", params={"path": "/"}, content=_pieces(packed))
            placed.raise_for_status()
            named = {"container": container, "repo": name, "tag": "latest"}
            client.post("/commit", params=named, json={}).raise_for_status()
            client.delete(f"/containers/{container}", params={"force": "1"}).raise_for_status()
        return f"{name}:latest"

    def remove_containers(self, name: str) -> None:
        with self.client() as client:
            for container in self.containers(name):
                client.delete(f"/containers/{container['Id']}", params={"force": "1"}).raise_for_status()


@contextmanager
def running_docker_engine() -> Iterator[DockerEngine]:
    """Started, with the image; gone with all its containers when the block ends."""
    require_root()
    require_program("containerd", _HOW_TO_GET)
    program = require_program("dockerd", _HOW_TO_GET)
    with ExitStack() as stack:
        # A socket's path is short: pytest's own folders are too deep for it.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cb-docker-")))
        stack.callback(_unmount_below, folder)
        address = f"unix://{folder}/docker.sock"
        log = stack.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen(
            [
                *(program, "--data-root", folder / "data", "--exec-root", folder / "exec"),
                *("--pidfile", folder / "pid", "-H", address, "--shutdown-timeout", "1"),
                *("--iptables=false", "--ip6tables=false", "--bridge=none"),
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stack.callback(_stop, process)
        engine = DockerEngine(address=address)
        _prepare(engine, process)
        yield engine


def _prepare(engine: DockerEngine, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _listens(engine.socket):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("The Docker engine did not start.")
        time.sleep(0.05)
    with engine.client() as client:
        repository, _, tag = _IMAGE.partition(":")
        query = {"fromSrc": "-", "repo": repository, "tag": tag}
        with tempfile.TemporaryFile() as packed:
            _write_image(packed)
            packed.seek(0)
            answer = client.post("/images/create", params=query, content=_pieces(packed))
        if answer.status_code != 200 or "error" in answer.text:
            raise RuntimeError(f"The image could not be made: {answer.text}")


def _listens(place: str) -> bool:
    with socket.socket(socket.AF_UNIX) as peer:  # httpx leaks a socket that does not connect
        try:
            peer.connect(place)
        except OSError:
            return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_SECONDS)


def _unmount_below(folder: Path) -> None:
    """What a killed engine leaves mounted."""
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for place in sorted((place for place in places if place.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", place], check=False)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """To send: of bytes in one piece the client copies what is left each time that it has sent some."""
    return iter(lambda: file.read(1 << 20), b"")


def _write_image(packed: IO[bytes]) -> None:
    with tarfile.open(fileobj=packed, mode="w") as image:
        for name, target in _LINKS.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            image.addfile(link)
        for name, mode in _FOLDERS.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            image.addfile(folder)
        _add_text(image, "etc/passwd", "root:x:0:0::/root:/bin/sh\nagent:x:61184:61184::/home/agent:/bin/sh\n")
        _add_text(image, "etc/group", "root:x:0:\nagent:x:61184:\n")
        linked = _add_python(image)
        for name in _PROGRAMS:
            program = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
            if program is None:
                raise RuntimeError(f"The image needs {name!r}, which this machine does not have.")
            _add_file(image, program, f"usr/bin/{name}")
            linked.append(program)
        listed = subprocess.run(["ldd", *linked], capture_output=True, text=True, check=False).stdout
        libraries = set(re.findall(r"(/\S+) \(0x", listed))
        [system] = {Path(library).parent for library in libraries if library.endswith("/libc.so.6")}
        libraries |= {str(system / name) for name in _FOR_AGENT_PROGRAMS if (system / name).exists()}
        for library in sorted(libraries):
            _add_file(image, library, _inside(library))


def _add_python(image: tarfile.TarFile) -> list[str]:
    """The interpreter that runs the tests, where it is outside: it finds its library from there. Gives back what else
    may need libraries."""
    program = os.path.realpath(sys.executable)
    library = sysconfig.get_path("stdlib")
    _add_file(image, program, _inside(program))
    link = tarfile.TarInfo("usr/bin/python3")
    link.type, link.linkname = tarfile.SYMTYPE, program
    image.addfile(link)
    linked = [program]
    for above, folders, files in os.walk(library):
        folders[:] = [name for name in folders if name not in _NOT_NEEDED and not name.startswith("config-")]
        for name in files:
            if ".opt-" in name:  # compiled for Python -O; the others spare each container the compiler
                continue
            place = os.path.join(above, name)  # noqa: PTH118 - os.walk's own strings, thousands of them
            _add_file(image, place, _inside(place))
            if name.endswith(".so"):
                linked.append(place)
    return linked


def _inside(place: str) -> str:
    """Through the links that the image has at its top."""
    top, _, rest = place.lstrip("/").partition("/")
    return f"{_LINKS.get(top, top)}/{rest}"


def _add_file(image: tarfile.TarFile, source: str, name: str) -> None:
    with Path(source).open("rb") as file:
        member = tarfile.TarInfo(name)
        about = os.fstat(file.fileno())
        member.size, member.mode = about.st_size, about.st_mode & 0o777
        member.mtime = int(about.st_mtime)  # by which Python knows what its compiled files were made of
        image.addfile(member, file)


def _add_text(image: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(text)
    image.addfile(member, io.BytesIO(text.encode()))
