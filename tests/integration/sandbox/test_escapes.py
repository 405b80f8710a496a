"""What hostile code tries, in every sandbox that claims to keep it in."""

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Finished, Implementation, Site, finish, shell

from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox.model import Command, Network, SandboxSpec, SandboxState
from contextbase.sandbox.ports import SandboxDriver

_LIMITS = ResourceLimits(
    max_memory=256 << 20, max_cpu=100, max_processes=50, max_execution_time=30, max_output=1 << 20, max_disk=64 << 20
)


@pytest.fixture(params=[name for name, one in IMPLEMENTATIONS.items() if one.is_isolated])
def implementation(request: pytest.FixtureRequest) -> Implementation:
    return IMPLEMENTATIONS[request.param]


@pytest.fixture
def given(request: pytest.FixtureRequest, implementation: Implementation) -> object:
    return None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)


@pytest.fixture
async def site(implementation: Implementation, given: object, tmp_path: Path) -> AsyncIterator[Site]:
    async with implementation.site(tmp_path, given) as site:
        yield site


@pytest.fixture
def driver(site: Site) -> SandboxDriver:
    return site.driver()


@pytest.fixture
async def running(site: Site, driver: SandboxDriver) -> SandboxSpec:
    spec = site.spec(limits=_LIMITS)
    await driver.create(spec)
    await driver.start(spec.id)
    return spec


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the machine that everybody may read."""
    place = tmp_path / "secret"
    place.write_text("hunter2")
    place.chmod(0o644)
    return place


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the machine that the agents' account may signal, if it can name it."""
    user = {"user": 61184, "group": 61184, "extra_groups": []} if os.geteuid() == 0 else {}
    command = ["marker-hunter2", "1000"]
    with subprocess.Popen(command, executable="/bin/sleep", env={"TOKEN": "hunter2"}, **user) as process:
        yield process
        process.kill()


async def attempt(site: Site, driver: SandboxDriver, text: str, **values: object) -> Finished:
    return await site.once(driver, site.spec(limits=_LIMITS, **values), shell(text))


async def attempt_python(site: Site, driver: SandboxDriver, code: str, *arguments: str, **values: object) -> Finished:
    argv = (site.require_python(), "-I", "-c", code, *arguments)
    return await site.once(driver, site.spec(limits=_LIMITS, **values), Command(argv=argv))


# Files


async def test_no_file_of_the_machine_can_be_read(site: Site, driver: SandboxDriver, secret: Path) -> None:
    tried = await attempt(site, driver, f"cat {secret} /etc/shadow /root/.bashrc; ls {secret.parent} /home/*/.ssh")
    assert "hunter2" not in tried.stdout
    assert tried.stdout == ""


async def test_a_link_in_the_workspace_leads_nowhere(
    implementation: Implementation, site: Site, driver: SandboxDriver, secret: Path
) -> None:
    if implementation.binds_folders:
        (site.workspace() / "planted").symlink_to(secret)
    text = f"ln -s {secret} link; ln -s /proc/1/root{secret} other; cat link other planted; echo x > link"
    tried = await attempt(site, driver, text)
    assert "hunter2" not in tried.stdout
    assert await asyncio.to_thread(secret.read_text) == "hunter2"


async def test_the_roots_of_other_processes_are_the_sandboxs_own(
    site: Site, driver: SandboxDriver, secret: Path
) -> None:
    text = (
        f"for p in /proc/[0-9]* /proc/self /proc/thread-self; do cat $p/root{secret} $p/cwd/../secret; done 2>/dev/null"
    )
    tried = await attempt(site, driver, text)
    assert tried.stdout == ""


async def test_nothing_outside_the_workspace_and_the_temporary_folders_can_be_written(
    site: Site, driver: SandboxDriver
) -> None:
    if site.holds_files:
        return  # its root is its own, and goes with it
    places = "/ /usr /usr/bin /bin /lib /etc /var /dev /sys /proc /proc/sys/kernel /home /opt /root /boot /srv"
    tried = await attempt(site, driver, f"for p in {places}; do touch $p/planted 2>/dev/null && echo $p; done; exit 0")
    assert tried.stdout == ""


async def test_the_kernels_settings_cannot_be_changed(site: Site, driver: SandboxDriver) -> None:
    text = """
    for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/overcommit_memory \
        /proc/sys/user/max_user_namespaces /proc/sysrq-trigger /proc/self/oom_score_adj_no; do
        old=$(cat $f 2>/dev/null); (echo "${old:-x}" > $f) 2>/dev/null && echo "$f"
    done; exit 0"""
    assert (await attempt(site, driver, text)).stdout == ""


async def test_devices_can_neither_be_made_nor_found(site: Site, driver: SandboxDriver) -> None:
    text = "mknod d b 8 0; mknod /tmp/d c 1 1; ls /dev; cat /dev/mem /dev/kmsg /dev/sda /dev/vda"
    tried = await attempt(site, driver, text)
    present = set(tried.stdout.split())
    allowed = {"console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin"}
    assert present <= allowed | {"stdout", "tty", "urandom", "zero"}
    assert not tried.outcome.succeeded


async def test_a_setuid_program_gives_nothing(site: Site, driver: SandboxDriver) -> None:
    text = "cp /bin/sh own; chmod 6755 own; ./own -p -c 'id -u'; id -u; grep -E 'Cap(Eff|Prm|Bnd)' /proc/self/status"
    tried = await attempt(site, driver, text)
    assert "0" not in tried.stdout.split("Cap")[0].split()
    assert all(line.split()[1].strip("0") == "" for line in tried.stdout.splitlines() if line.startswith("Cap"))
    status = await attempt(site, driver, "grep NoNewPrivs /proc/self/status")
    assert status.stdout.split() == ["NoNewPrivs:", "1"]


async def test_no_access_to_root_by_the_usual_programs(site: Site, driver: SandboxDriver) -> None:
    tried = await attempt(
        site, driver, "su -c id root </dev/null; sudo -n id; mount -t tmpfs none /tmp; chroot / id; unshare -r id"
    )
    assert "uid=0" not in tried.stdout
    assert not tried.outcome.succeeded


# Processes


async def test_no_process_of_the_machine_is_seen(
    site: Site, driver: SandboxDriver, bystander: "subprocess.Popen[bytes]"
) -> None:
    assert bystander.poll() is None
    text = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"
    tried = await attempt(site, driver, text)
    assert tried.stdout
    assert "hunter2" not in tried.stdout


async def test_nothing_of_the_machine_can_be_killed(
    site: Site, driver: SandboxDriver, bystander: "subprocess.Popen[bytes]"
) -> None:
    text = f"kill -9 {bystander.pid}; kill -9 {os.getpid()}; kill -9 $PPID; kill -9 1; kill -9 -1; echo on"
    await attempt(site, driver, text)
    assert bystander.poll() is None
    assert (await attempt(site, driver, "echo on")).stdout == "on\n"


async def test_a_sandbox_outlives_the_end_of_all_its_processes(driver: SandboxDriver, running: SandboxSpec) -> None:
    await finish(await driver.exec(running.id, shell("kill -9 1; kill -9 -1; exit 0")))
    assert (await driver.inspect(running.id)).state is SandboxState.RUNNING
    assert (await finish(await driver.exec(running.id, shell("echo on")))).stdout == "on\n"


async def test_one_sandbox_sees_nothing_of_another(site: Site, driver: SandboxDriver, running: SandboxSpec) -> None:
    text = "echo hunter2 > /tmp/private; echo hunter2 > private; hunter2=1 exec -a hunter2 sleep 1000"
    other = await driver.exec(running.id, Command(argv=("/bin/bash", "-c", text), environment={"TOKEN": "hunter2"}))
    spec = site.spec(workspace="another", limits=_LIMITS)
    look = (
        "cat /tmp/* /workspace/* /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; ls -R /tmp /home /run /dev/shm"
    )
    tried = await site.once(driver, spec, shell(look))
    assert "hunter2" not in tried.stdout
    assert "private" not in tried.stdout
    await other.kill()


async def test_nothing_of_our_environment_arrives(
    site: Site, driver: SandboxDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", "hunter2")
    tried = await attempt(site, driver, "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'")
    assert "hunter2" not in tried.stdout


async def test_a_daemon_that_is_left_behind_ends_with_the_command(site: Site, driver: SandboxDriver) -> None:
    mark = f"9{uuid4().int % 10**6}"
    text = f"(setsid setsid sleep {mark} >/dev/null 2>&1 &) ; (nohup sleep {mark} >/dev/null 2>&1 &); exit 0"
    await attempt(site, driver, text)
    assert mark.encode() not in b"".join(_command_lines())


def _command_lines() -> Iterator[bytes]:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield place.read_bytes()


_TRACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for process in [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) != os.getpid()]:
    if libc.ptrace(16, process, 0, 0) == 0:
        print('traced', process)
    for name in ('mem', 'maps', 'environ'):
        try:
            data = open(f'/proc/{process}/{name}', 'rb').read(1 << 20)
        except OSError:
            continue
        if b'hunter2' in data:
            print('read', process, name)
"""


async def test_no_other_process_is_traced_or_looked_into(site: Site, driver: SandboxDriver) -> None:
    tried = await attempt_python(site, driver, _TRACE)
    assert (tried.stdout, tried.outcome.exit_code) == ("", 0)


_WATCH = """
import os, sys, time
own, seen, leaked = os.getpid(), set(), set()
ends = time.monotonic() + float(sys.argv[1])
print('watching', flush=True)
while time.monotonic() < ends:
    for name in os.listdir('/proc'):
        if not name.isdigit() or int(name) <= own:
            continue
        seen.add(name)
        for what in ('exe', 'cwd', 'root'):
            try:
                target = os.readlink(f'/proc/{name}/{what}')
            except OSError:
                continue
            if what == 'exe' and not target.startswith(('/usr', '/bin')):
                leaked.add((what, target))
        try:
            for number in os.listdir(f'/proc/{name}/fd'):
                target = os.readlink(f'/proc/{name}/fd/{number}')
                if not target.startswith(('pipe:', '/dev/', '/proc', '/workspace', '/usr', '/etc/ld.so')):
                    leaked.add(('fd', target))
            if b'hunter2' in open(f'/proc/{name}/environ', 'rb').read():
                leaked.add(('environ',))
            os.open(f'/proc/{name}/mem', os.O_RDWR)
        except OSError:
            continue
print(len(seen), sorted(leaked))
"""


async def test_who_comes_into_a_sandbox_brings_nothing_that_can_be_taken(
    site: Site, driver: SandboxDriver, running: SandboxSpec
) -> None:
    watching = await driver.exec(running.id, Command(argv=(site.require_python(), "-I", "-c", _WATCH, "3")))
    reading = watching.output()
    assert (await anext(reading)).data == b"watching\n"
    for _ in range(40):
        await finish(await driver.exec(running.id, Command(argv=("true",))))
    said = b"".join([output.data async for output in reading]).decode()
    count, _, leaked = said.strip().partition(" ")
    assert int(count) > 0
    assert leaked == "[]"


async def test_a_command_has_no_open_files_but_its_own(driver: SandboxDriver, running: SandboxSpec) -> None:
    argv = ("ls", "-l", "/proc/self/fd")
    for command in (Command(argv=argv), Command(argv=argv, has_input=True)):
        said = await finish(await driver.exec(running.id, command))
        files = [line.split(" -> ")[1] for line in said.stdout.splitlines() if " -> " in line]
        assert len(files) == 4
        assert all(name.startswith(("pipe:", "/dev/null", "socket:", "/proc/")) for name in files)


# The network

_CONNECT = """
import socket, sys
port, path, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
tries = [
    (socket.AF_INET, ('127.0.0.1', port)), (socket.AF_INET, ('8.8.8.8', 53)), (socket.AF_INET6, ('::1', port)),
    (socket.AF_UNIX, path), (socket.AF_UNIX, chr(0) + name),
]
for family, address in tries:
    try:
        with socket.socket(family) as one:
            one.settimeout(2)
            one.connect(address)
            print('connected', address)
    except OSError:
        pass
for family in (socket.AF_PACKET, socket.AF_VSOCK):
    try:
        socket.socket(family, socket.SOCK_RAW if family == socket.AF_PACKET else socket.SOCK_STREAM).close()
        print('made', family)
    except OSError:
        pass
"""


@pytest.mark.parametrize("network", list(Network))
async def test_nobody_outside_can_be_reached(site: Site, driver: SandboxDriver, network: Network) -> None:
    name = f"contextbase-test-{uuid4().hex}"
    with (
        socket.create_server(("127.0.0.1", 0)) as inet,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        path = Path("/tmp") / f"{name}.sock"  # noqa: S108 - the name is short enough for a socket
        unix.bind(str(path))
        path.chmod(0o777)
        abstract.bind(f"\0{name}")
        for one in (unix, abstract):
            one.listen()
        port = str(inet.getsockname()[1])
        try:
            tried = await attempt_python(site, driver, _CONNECT, port, str(path), name, network=network)
        finally:
            path.unlink()
    lines = [line for line in tried.stdout.splitlines() if not line.startswith("made")]
    assert lines == []
    assert tried.outcome.exit_code == 0


_LOOPBACK = """
import socket
with socket.create_server(('127.0.0.1', 0)) as server, socket.create_connection(server.getsockname()) as client:
    client.sendall(b'own')
    print(server.accept()[0].recv(10))
"""


async def test_programs_inside_can_talk_to_each_other_if_they_may(site: Site, driver: SandboxDriver) -> None:
    tried = await attempt_python(site, driver, _LOOPBACK, network=Network.LOOPBACK)
    assert tried.stdout == "b'own'\n"


# Bombs


async def test_a_fork_bomb_stays_small_and_ends(site: Site, driver: SandboxDriver) -> None:
    site.require_groups()
    text = "b() { b | b & }; b; sleep 3; exit 0"
    tried = await attempt(site, driver, text)
    assert tried.outcome.forks_refused or tried.outcome.stopped_by is Limit.PROCESSES
    assert (await attempt(site, driver, "echo on")).stdout == "on\n"


async def test_a_fork_bomb_in_a_sandbox_that_stays_ends_with_its_command(
    site: Site, driver: SandboxDriver, running: SandboxSpec
) -> None:
    site.require_groups()
    bomb = await driver.exec(running.id, shell("b() { b | b & }; b; sleep 1000"))
    await asyncio.sleep(0.5)
    async with asyncio.timeout(60):
        await bomb.kill()
    assert (await finish(await driver.exec(running.id, shell("echo on")))).stdout == "on\n"
    assert (await driver.stats(running.id)).processes < 10


async def test_a_memory_bomb_is_stopped(site: Site, driver: SandboxDriver) -> None:
    site.require_groups()
    tried = await attempt(site, driver, "tail /dev/zero")
    assert tried.outcome.stopped_by is Limit.MEMORY


async def test_memory_taken_through_temporary_files_counts(site: Site, driver: SandboxDriver) -> None:
    if site.holds_files:
        return
    fill = "head -c 200000000 /dev/zero > $place/big || echo full"
    tried = await attempt(site, driver, f"for place in /tmp /dev/shm /home/agent; do {fill}; done; exit 1")
    assert tried.outcome.stopped_by in (Limit.MEMORY, Limit.DISK) or "full" in tried.stdout
    assert (tried.outcome.peak_memory or 0) <= _LIMITS.max_memory


async def test_a_disk_bomb_is_stopped(site: Site, driver: SandboxDriver) -> None:
    text = "i=0; while :; do i=$((i+1)); head -c 5000000 /dev/zero > f$i; sync f$i; sleep 0.02; done"
    tried = await attempt(site, driver, text)
    assert tried.outcome.stopped_by is Limit.DISK


async def test_open_files_have_an_end(site: Site, driver: SandboxDriver) -> None:
    said = await attempt(site, driver, "ulimit -n; ulimit -c")
    files, cores = said.stdout.split()
    assert int(files) <= 1 << 20
    assert cores == "0"


async def test_endless_output_without_a_reader_is_stopped(driver: SandboxDriver, running: SandboxSpec) -> None:
    execution = await driver.exec(running.id, Command(argv=("yes",)))
    async with asyncio.timeout(60):
        assert (await execution.wait()).stopped_by is Limit.OUTPUT
