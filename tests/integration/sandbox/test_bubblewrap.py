"""What is bubblewrap's own: crashes, many at once, the filter of kernel calls, what stays of the machine's mounts."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from tests.support.require import require_root
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Site, finish, shell

from contextbase.errors import Conflict, MachineProblem, Unavailable
from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.cgroups.separate import SeparateGroups
from contextbase.sandbox.cgroups.unified import UnifiedGroup
from contextbase.sandbox.model import Command, Network, SandboxId, SandboxState, TerminalSize
from contextbase.sandbox.native import starter
from contextbase.sandbox.native.launcher.client import Launcher
from contextbase.sandbox.ports import SandboxDriver
from contextbase.sandbox.seccomp import REFUSED_CALLS
from contextbase.workspaces.model import Owner

_BOUND = 120
_TRIES = 1000


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with IMPLEMENTATIONS["bubblewrap"].site(tmp_path, None) as site:
        yield site


@pytest.fixture
def driver(site: Site) -> SandboxDriver:
    return site.driver()


def processes_with(mark: str) -> set[str]:
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            words = place.read_bytes().decode(errors="replace").split("\0")
            found |= {word for word in words if word.startswith(mark)}
    return found


async def until_gone(mark: str) -> None:
    for _ in range(_TRIES):
        if not processes_with(mark):
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{processes_with(mark)} still run")


def ours_of(node_folder: Path) -> list[int]:
    """The processes of this test's drivers, by the folder that their command lines name."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if os.fsencode(node_folder) in place.read_bytes() and int(place.parent.name) != os.getpid():
                found.append(int(place.parent.name))
    return found


def owner_of(path: str) -> int:
    return Path(path).stat().st_uid


def groups_of(node: str) -> list[Path]:
    """A walk that does not mind groups of others which go meanwhile."""
    name = f"contextbase-{node}"
    return [Path(folder) / name for folder, groups, _ in os.walk("/sys/fs/cgroup") if name in groups]


def who_has_mounted(folder: Path, node: str) -> list[int]:
    """Of a driver's own processes: others on this machine may have copied its mounts for reasons of their own."""
    in_groups = [
        int(line)
        for group in groups_of(node)
        for place in group.rglob("cgroup.procs")
        for line in place.read_text().split()
    ]
    found = []
    for process in {*in_groups, *(child.pid for child in psutil.Process().children(recursive=True))}:
        with contextlib.suppress(OSError):
            if str(folder) in Path(f"/proc/{process}/mountinfo").read_text():
                found.append(process)
    assert in_groups, "the sandbox runs"
    return found


def started(command: list[str], **options: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, **options)


def call(*command: str) -> None:
    subprocess.run(command, check=True)


async def test_a_killed_server_leaves_its_sandboxes_and_nothing_else(site: Site) -> None:
    mark = f"9{uuid4().int % 10**8:08}"
    node = f"test-{uuid4().hex[:12]}"
    root = site.folder / "other-node"
    arguments = [str(root), node, str(site.workspace()), mark]
    worker = [sys.executable, "-m", "tests.support.sandbox_worker", *arguments]
    with started(worker, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        sandbox_id = SandboxId(json.loads(await asyncio.to_thread(process.stdout.readline)))
        assert processes_with(mark) >= {f"{mark}1", f"{mark}2", f"{mark}3"}
        process.send_signal(signal.SIGKILL)
    await until_gone(mark)
    driver = BubblewrapDriver(root, owner=site.owner, node=node)
    try:
        (found,) = await driver.found()
        assert (found.id, found.state) == (sandbox_id, SandboxState.RUNNING)
        assert (await finish(await driver.exec(sandbox_id, shell("cat /tmp/note")))).stdout == "kept\n"
        await driver.remove(sandbox_id)
    finally:
        await driver.close()


async def test_a_sandbox_whose_holder_is_gone_is_stopped_and_can_be_started(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec()
    await driver.create(spec)
    await driver.start(spec.id)
    record = json.loads((site.folder / "node" / "sandboxes" / str(spec.id) / "holder.json").read_text())
    os.kill(record["process"], signal.SIGKILL)
    for _ in range(_TRIES):
        if (await driver.inspect(spec.id)).state is SandboxState.STOPPED:
            break
        await asyncio.sleep(0.01)
    await driver.start(spec.id)
    assert (await finish(await driver.exec(spec.id, shell("echo on")))).stdout == "on\n"


async def test_another_process_with_the_holders_number_is_neither_joined_nor_killed(
    site: Site, driver: SandboxDriver
) -> None:
    spec = site.spec()
    await driver.create(spec)
    await driver.start(spec.id)
    await driver.stop(spec.id)
    place = site.folder / "node" / "sandboxes" / str(spec.id) / "holder.json"
    with started(["sleep", "1000"]) as bystander:
        place.write_text(json.dumps(json.loads(place.read_text()) | {"process": bystander.pid}))
        assert (await driver.inspect(spec.id)).state is SandboxState.STOPPED
        await driver.stop(spec.id)
        assert bystander.poll() is None
        bystander.kill()


async def test_what_a_spec_keeps_secret_is_for_our_eyes_only(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec(environment={"TOKEN": f"hunter{uuid4().hex}"})
    await driver.create(spec)
    place = site.folder / "node" / "sandboxes" / str(spec.id) / "spec.json"
    assert place.stat().st_mode & 0o077 == 0
    execution = await driver.run(spec, shell("echo there; read wait", has_input=True))
    reading = execution.output()
    assert (await anext(reading)).data == b"there\n"
    assert not processes_with(spec.environment["TOKEN"])
    await execution.kill()


async def test_a_launcher_that_was_killed_is_replaced(site: Site, driver: SandboxDriver) -> None:
    assert (await finish(await driver.run(site.spec(), shell("echo one")))).stdout == "one\n"
    for _ in range(2):
        starter = driver._prepared.launching  # type: ignore[attr-defined] # white-box: to have its process
        starter._launcher._process.kill()
        starter._launcher._process.wait()
        assert (await finish(await driver.run(site.spec(), shell("echo two")))).stdout == "two\n"
        assert (await finish(await driver.run(site.spec(), shell("echo three")))).stdout == "three\n"


async def test_a_hundred_sandboxes_idle_at_once(site: Site, driver: SandboxDriver) -> None:
    specs = [site.spec(workspace=f"workspace-{number}") for number in range(100)]
    turns = asyncio.Semaphore(8)

    async def begin(number: int) -> None:
        async with turns:
            await driver.create(specs[number])
            await driver.start(specs[number].id)

    async def ask(number: int) -> str:
        async with turns:
            return (await finish(await driver.exec(specs[number].id, shell(f"echo {number} > mine; cat *")))).stdout

    async with asyncio.timeout(_BOUND):
        await asyncio.gather(*(begin(number) for number in range(100)))
        assert {info.state for info in await driver.found()} == {SandboxState.RUNNING}
        said = await asyncio.gather(*(ask(number) for number in range(100)))
        assert said == [f"{number}\n" for number in range(100)]
        if site.has_groups:
            used = [await driver.stats(spec.id) for spec in specs]
            assert sum(one.memory for one in used) / len(used) < 8 << 20
        await asyncio.gather(*(driver.remove(spec.id) for spec in specs))


async def test_nothing_is_left_of_closed_drivers(site: Site) -> None:
    driver = site.driver()
    spec = site.spec()
    await finish(await driver.run(spec, shell("sleep 1000 & exit 0")))
    await driver.create(spec)
    await driver.start(spec.id)
    await finish(await driver.exec(spec.id, shell("sleep 1000 & exit 0")))
    await driver.remove(spec.id)
    node = driver._node  # type: ignore[attr-defined] # white-box: what its groups are named by
    await driver.close()
    assert groups_of(node) == []
    assert ours_of(site.folder / "node") == []


async def test_other_mounts_of_the_machine_are_not_kept_busy(site: Site, tmp_path: Path) -> None:
    require_root()
    other = tmp_path / "other"
    other.mkdir()
    call("mount", "-t", "tmpfs", "none", str(other))
    try:
        driver = site.driver()
        spec = site.spec()
        await driver.create(spec)
        await driver.start(spec.id)
        assert (await finish(await driver.exec(spec.id, shell("echo on")))).stdout == "on\n"
        node = driver._node  # type: ignore[attr-defined] # white-box: what its groups are named by
    finally:
        call("umount", str(other))
    assert who_has_mounted(other, node) == []


async def test_what_a_command_is_given_of_the_machine_stays_the_machines(site: Site, driver: SandboxDriver) -> None:
    owner = owner_of(os.devnull)
    for command in (shell("echo named > /dev/stderr"), shell("cat", has_input=True)):
        execution = await driver.run(site.spec(), command)
        await execution.end_input()
        assert (await finish(execution)).outcome.succeeded
        assert owner_of(os.devnull) == owner


async def test_agents_never_run_as_root(tmp_path: Path) -> None:
    driver = BubblewrapDriver(tmp_path, owner=Owner(uid=0, gid=0), node="test")
    with pytest.raises(MachineProblem, match="never run as root"):
        await driver.limits_by()


# The filter of kernel calls

_CALLS = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(value) for value in arguments])
    return 'allowed' if result >= 0 else os.strerror(ctypes.get_errno())
print(json.dumps({name: call(number, *arguments) for name, (number, *arguments) in json.loads(sys.argv[1]).items()}))
"""


async def answers(site: Site, driver: SandboxDriver, calls: dict[str, list[int]], network: Network) -> dict[str, str]:
    argv = (site.require_python(), "-I", "-c", _CALLS, json.dumps(calls))
    ran = await finish(await driver.run(site.spec(network=network), Command(argv=argv)))
    said: dict[str, str] = json.loads(ran.stdout)
    return said


async def test_calls_that_escapes_are_made_of_are_refused(site: Site, driver: SandboxDriver) -> None:
    calls = {name: [number, -1, -1, -1, -1] for name, number in REFUSED_CALLS[os.uname().machine].items()}
    said = await answers(site, driver, calls, Network.NONE)
    assert {name for name, answer in said.items() if answer != "Operation not permitted"} == set()
    assert len(said) == len(calls)


async def test_calls_are_refused_with_some_arguments_and_allowed_with_others(site: Site, driver: SandboxDriver) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("The numbers here are those of x86_64; the filter's own table is checked on every machine.")
    new_user, device, pipe = 0x1000_0000, 0o020644, 0o010644
    calls = {
        "clone with a new user namespace": [56, new_user | 17, 0],
        "clone with a new network, upper half set": [56, 0x1_4000_0011, 0],
        "clone3": [435, 0, 0],
        "a call of the future": [600],
        "personality: no randomness": [135, 0x40000],
        "personality: what is it": [135, 0xFFFF_FFFF],
        "a device": [133, 0, device, 0x103],
        "a device by its folder": [259, -100, 0, device, 0x103],
        "a pipe at no name": [133, 0, pipe, 0],
        "socket: internet": [41, 2, 1, 0],
        "socket: unix": [41, 1, 1, 0],
        "socket: netlink": [41, 16, 3, 0],
        "socket: packet": [41, 17, 3, 0],
        "socket: virtual machine": [41, 40, 1, 0],
        "push into a terminal": [16, 0, 0x5412, 0],
        "push into a terminal, upper half set": [16, 0, 0x1_0000_5412, 0],
    }
    refused, unknown, family = (
        "Operation not permitted",
        "Function not implemented",
        "Address family not supported by protocol",
    )
    expected = {
        "clone with a new user namespace": refused,
        "clone with a new network, upper half set": refused,
        "clone3": unknown,
        "a call of the future": unknown,
        "personality: no randomness": refused,
        "personality: what is it": "allowed",
        "a device": refused,
        "a device by its folder": refused,
        "a pipe at no name": "Bad address",
        "socket: internet": family,
        "socket: unix": "allowed",
        "socket: netlink": family,
        "socket: packet": family,
        "socket: virtual machine": family,
        "push into a terminal": refused,
        "push into a terminal, upper half set": refused,
    }
    assert await answers(site, driver, calls, Network.NONE) == expected
    with_loopback = await answers(site, driver, calls, Network.LOOPBACK)
    assert with_loopback["socket: internet"] == with_loopback["socket: netlink"] == "allowed"
    assert with_loopback["socket: packet"] == with_loopback["socket: virtual machine"] == family


_PUSH = """
import fcntl, sys, termios
try:
    fcntl.ioctl(0, termios.TIOCSTI, b'x')
    print('pushed')
except OSError as error:
    print(error.strerror)
"""


async def test_nothing_is_pushed_into_a_terminal(site: Site, driver: SandboxDriver) -> None:
    command = Command(argv=(site.require_python(), "-I", "-c", _PUSH), terminal=TerminalSize())
    assert (await finish(await driver.run(site.spec(), command))).stdout.strip() == "Operation not permitted"


_REOPEN = """#!/proc/self/exe
import fcntl, os
program = os.open('/proc/self/exe', os.O_RDONLY)
print(os.readlink('/proc/self/exe'), fcntl.fcntl(program, 1034))
"""


async def test_the_program_that_comes_in_cannot_be_changed_by_who_runs_it_inside(
    site: Site, driver: SandboxDriver
) -> None:
    script = site.workspace() / "script"
    script.write_text(_REOPEN)
    script.chmod(0o755)
    ran = await finish(await driver.run(site.spec(), Command(argv=("/workspace/script",))))
    assert ran.stdout.split()[0].startswith("/memfd:launcher")
    assert int(ran.stdout.split()[-1]) == 0xF, "sealed against writing, growing, shrinking and further seals"


_OPEN_FILES = "for one in /proc/1/fd/*; do readlink $one; done"


async def test_the_first_process_inside_has_no_open_files_but_its_own(site: Site, driver: SandboxDriver) -> None:
    spec, command = site.spec(), Command(argv=("sh", "-c", _OPEN_FILES))
    once = await finish(await driver.run(spec, command))
    await driver.create(spec)
    await driver.start(spec.id)
    for ran in (once, await finish(await driver.exec(spec.id, command))):
        files = ran.stdout.split()
        assert len(files) == 3
        assert all(name.startswith("pipe:") for name in files)


async def test_a_program_whose_name_fills_a_pipe_is_not_found_like_any_other(site: Site, driver: SandboxDriver) -> None:
    async with asyncio.timeout(30):
        for name in ("x" * 130_000, "/" + "x" * 130_000):
            ran = await finish(await driver.run(site.spec(), Command(argv=(name,))))
            assert ran.outcome.exit_code in (126, 127)
            assert ran.stderr.startswith(name[:100])
            assert len(ran.stderr) < 1000


_HALTS_OTHERS = """
import os, signal
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError:
        pass
"""


async def test_who_halts_commands_as_they_come_in_holds_nobody_up_for_ever(
    site: Site, driver: SandboxDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter, "_LONGEST_START", 0.5)
    spec = site.spec()
    await driver.create(spec)
    await driver.start(spec.id)
    await driver.exec(spec.id, Command(argv=(site.require_python(), "-c", _HALTS_OTHERS)))
    for _ in range(40):
        async with asyncio.timeout(30):
            try:
                await finish(await driver.exec(spec.id, Command(argv=("/bin/true",), timeout=0.2)))
            except Unavailable:
                break
    else:
        pytest.fail("none of them was caught before it had begun")
    await driver.remove(spec.id)


async def test_a_command_that_comes_as_its_sandbox_stops_is_ended_or_told_so(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec()
    await driver.create(spec)

    async def one() -> int | None:
        try:
            return (await finish(await driver.exec(spec.id, Command(argv=("/bin/true",))))).outcome.exit_code
        except Conflict:
            return None

    for _ in range(25):
        await driver.start(spec.id)
        *codes, _ = await asyncio.gather(*(one() for _ in range(4)), driver.stop(spec.id))
        assert set(codes) <= {0, None}


async def test_a_sandbox_whose_memory_is_full_of_files_says_so(site: Site, driver: SandboxDriver) -> None:
    site.require_groups()
    spec = site.spec(limits=ResourceLimits(max_memory=32 << 20, max_processes=50))
    await driver.create(spec)
    await driver.start(spec.id)
    refusals: list[str] = []
    for _ in range(40):
        try:
            done = await finish(await driver.exec(spec.id, shell("head -c 100000000 /dev/zero >> /tmp/big; exit 1")))
        except Conflict as refused:
            if (await driver.inspect(spec.id)).state is SandboxState.STOPPED:
                break  # the kernel found nothing else to end than its first process
            refusals.append(refused.message)
        else:
            assert done.outcome.stopped_by is Limit.MEMORY
    assert [message for message in refusals if "memory" not in message] == []


async def test_a_sandbox_without_memory_for_a_further_group_says_so(
    site: Site, driver: SandboxDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It depends on the kernel's mood whether a command or its group is what does not fit."""
    site.require_groups()
    spec = site.spec()
    await driver.create(spec)
    await driver.start(spec.id)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    for kind in (SeparateGroups, UnifiedGroup):
        monkeypatch.setattr(kind, "make", full)
    with pytest.raises(Conflict, match="memory"):
        await driver.exec(spec.id, shell("true"))
    monkeypatch.undo()
    assert (await finish(await driver.exec(spec.id, shell("true")))).outcome.exit_code == 0


@pytest.mark.parametrize("failure", [MachineProblem("It ends as soon as it is started."), asyncio.CancelledError()])
async def test_a_command_that_is_given_up_before_it_has_a_process_leaves_no_group(
    site: Site, driver: SandboxDriver, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    site.require_groups()
    spec = site.spec()
    await driver.create(spec)
    await driver.start(spec.id)
    node = driver._node  # type: ignore[attr-defined] # white-box: what its groups are named by

    def groups() -> set[Path]:
        return {place for group in groups_of(node) for place in group.rglob("exec-*")}

    made: set[Path] = set()

    async def fail(*_: object) -> None:
        made.update(groups())
        raise failure

    monkeypatch.setattr(Launcher, "open", fail)
    with pytest.raises(type(failure)):
        await driver.exec(spec.id, shell("true"))
    assert made, "it has a group by then"
    assert groups() == set()
    leftovers = driver._prepared.launching._leftovers[spec.id]  # type: ignore[attr-defined] # white-box: nobody else can ask
    assert not leftovers._running, "what counts as running is never ended to make room"
