"""What every driver of the port `SandboxDriver` guarantees."""

import asyncio
import io
import signal
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from uuid import uuid4

import pytest
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Implementation, Site, finish, shell

from contextbase.errors import Conflict, InvalidInput, NotFound, Unavailable
from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox.model import Command, OutputStream, SandboxId, SandboxSpec, SandboxState, TerminalSize
from contextbase.sandbox.ports import SandboxDriver

_BOUND = 60
_SOCKET = PurePosixPath("/workspace/socket")
_ROOMY = ResourceLimits(
    max_memory=1 << 30, max_cpu=None, max_processes=200, max_execution_time=120, max_output=None, max_disk=None
)


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> Implementation:
    return IMPLEMENTATIONS[request.param]


@pytest.fixture
def given(request: pytest.FixtureRequest, implementation: Implementation) -> object:
    return None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)


@pytest.fixture
async def site(implementation: Implementation, given: object, tmp_path: Path) -> AsyncIterator[Site]:
    async with implementation.site(tmp_path, given) as site:
        yield site


one_shot = pytest.mark.parametrize(
    "implementation", [name for name, each in IMPLEMENTATIONS.items() if each.binds_folders], indirect=True
)
"""For tests of `run`, which needs a folder."""


@pytest.fixture
def driver(site: Site) -> SandboxDriver:
    return site.driver()


@pytest.fixture
async def running(site: Site, driver: SandboxDriver) -> SandboxSpec:
    spec = site.spec(limits=_ROOMY)
    await driver.create(spec)
    await driver.start(spec.id)
    return spec


def limited(**values: float | None) -> ResourceLimits:
    return ResourceLimits(**{"max_cpu": None, "max_memory": None, "max_processes": None, "max_output": None, **values})  # type: ignore[arg-type] # mypy cannot see into the dictionary


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def file_member(name: str, content: bytes = b"content") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 1000):
        yield data[start : start + 1000]


async def all_of(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in stream])


async def until_there(driver: SandboxDriver, spec: SandboxSpec, path: str) -> None:
    for _ in range(1000):
        found = await finish(await driver.exec(spec.id, Command(argv=("test", "-e", path))))
        if found.outcome.succeeded:
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"{path} did not come to be")


# One command in a sandbox of its own


@one_shot
async def test_a_command_runs_and_says_how_it_ended(site: Site, driver: SandboxDriver) -> None:
    ran = await finish(await driver.run(site.spec(), shell("echo out; echo err >&2; exit 3")))
    assert (ran.stdout, ran.stderr) == ("out\n", "err\n")
    assert (ran.outcome.exit_code, ran.outcome.signal, ran.outcome.stopped_by) == (3, None, None)
    assert not ran.outcome.succeeded
    assert ran.outcome.seconds > 0


@one_shot
async def test_arguments_arrive_as_they_are(site: Site, driver: SandboxDriver) -> None:
    words = ("two words", "$HOME", "", "ü\n*", "'\"")
    ran = await finish(await driver.run(site.spec(), Command(argv=("printf", "<%s>", *words))))
    assert ran.stdout == "".join(f"<{word}>" for word in words)


@one_shot
async def test_a_command_sees_its_environment_and_nothing_of_ours(
    site: Site, driver: SandboxDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "hunter2")
    spec = site.spec(environment={"FROM_SPEC": "a", "OF_BOTH": "spec"})
    command = Command(argv=("env",), environment={"FROM_COMMAND": "b c", "OF_BOTH": "command"})
    seen = dict(line.split("=", 1) for line in (await finish(await driver.run(spec, command))).stdout.splitlines())
    assert (seen["FROM_SPEC"], seen["FROM_COMMAND"], seen["OF_BOTH"]) == ("a", "b c", "command")
    assert {"HOME", "PATH"} <= set(seen)
    assert "OUR_SECRET" not in seen


@one_shot
async def test_it_starts_in_the_workspace_or_in_a_folder_below_it(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec()
    made = await finish(await driver.run(spec, shell("pwd; mkdir -p sub; cd sub; pwd")))
    top, below = made.stdout.split()
    if spec.folder is not None:
        there = await finish(await driver.run(spec, Command(argv=("pwd",), cwd=PurePosixPath("sub"))))
        assert there.stdout.split() == [below]
    assert below == f"{top}/sub"


@one_shot
async def test_a_folder_to_start_in_that_is_not_there_is_invalid(site: Site, driver: SandboxDriver) -> None:
    with pytest.raises(InvalidInput):
        await driver.run(site.spec(), Command(argv=("pwd",), cwd=PurePosixPath("nowhere")))


@one_shot
async def test_a_program_that_is_not_there_ends_as_in_a_shell(site: Site, driver: SandboxDriver) -> None:
    ran = await finish(await driver.run(site.spec(), Command(argv=("no-such-program",))))
    assert ran.outcome.exit_code == 127


@one_shot
async def test_a_signal_is_told_from_an_exit_code(
    implementation: Implementation, site: Site, driver: SandboxDriver
) -> None:
    exited = await finish(await driver.run(site.spec(), shell("exit 137")))
    assert (exited.outcome.exit_code, exited.outcome.signal) == (137, None)
    if implementation.tells_signals:
        killed = await finish(await driver.run(site.spec(), shell("kill -KILL $$")))
        assert (killed.outcome.exit_code, killed.outcome.signal) == (None, signal.SIGKILL)
        assert killed.outcome.stopped_by is None


@one_shot
async def test_input_arrives_and_ends(site: Site, driver: SandboxDriver) -> None:
    execution = await driver.run(site.spec(), Command(argv=("cat",), has_input=True))
    await execution.write(b"one ")
    await execution.write(b"two")
    await execution.end_input()
    await execution.end_input()
    ran = await finish(execution)
    assert (ran.stdout, ran.outcome.exit_code) == ("one two", 0)
    with pytest.raises(Conflict):
        await execution.write(b"late")


@one_shot
async def test_much_input_is_written_while_output_is_read(site: Site, driver: SandboxDriver) -> None:
    execution = await driver.run(site.spec(limits=_ROOMY), Command(argv=("cat",), has_input=True))
    sent = bytes(range(256)) * 8192

    async def write() -> None:
        await execution.write(sent)
        await execution.end_input()

    writing = asyncio.create_task(write())
    received = b"".join([output.data async for output in execution.output()])
    await writing
    assert received == sent
    assert (await execution.wait()).succeeded


@one_shot
async def test_without_input_there_is_nothing_to_read(site: Site, driver: SandboxDriver) -> None:
    execution = await driver.run(site.spec(), Command(argv=("cat",)))
    with pytest.raises(Conflict):
        await execution.write(b"x")
    assert (await finish(execution)).outcome.exit_code == 0


@one_shot
async def test_waiting_reads_what_nobody_reads(site: Site, driver: SandboxDriver) -> None:
    execution = await driver.run(site.spec(limits=_ROOMY), shell("head -c 3000000 /dev/zero"))
    async with asyncio.timeout(_BOUND):
        first = await execution.wait()
        assert first.succeeded
        assert await execution.wait() == first


@one_shot
async def test_a_reader_who_comes_while_somebody_waits_gets_the_rest(site: Site, driver: SandboxDriver) -> None:
    execution = await driver.run(site.spec(limits=_ROOMY), Command(argv=("cat",), has_input=True))
    waiting = asyncio.create_task(execution.wait())
    await asyncio.sleep(0)
    reading = asyncio.create_task(finish(execution))
    await asyncio.sleep(0)
    await execution.write(b"seen")
    await execution.end_input()
    assert (await reading).stdout == "seen"
    assert (await waiting).succeeded


@one_shot
async def test_who_reads_slowly_slows_the_command_down(site: Site, driver: SandboxDriver) -> None:
    block, blocks = 1 << 16, 16_384  # a gigabyte
    count = f"i=0; while [ $i -lt {blocks} ]; do head -c {block} /dev/zero; i=$((i+1)); echo $i >&2; done"
    execution = await driver.run(site.spec(limits=_ROOMY), shell(f"{{ {count}; }} 2>at"))
    reading = execution.output()
    async with asyncio.timeout(_BOUND):
        taken = len((await anext(reading)).data)
        await asyncio.sleep(0.5)  # time enough to write far more, if anybody took it
        while taken < 10 * block:
            taken += len((await anext(reading)).data)
        await execution.kill()
        rest = sum([len(output.data) async for output in reading])
    assert taken + rest < 100 * block


@one_shot
async def test_a_killed_command_ends_at_once(implementation: Implementation, site: Site, driver: SandboxDriver) -> None:
    execution = await driver.run(site.spec(), shell("echo started; sleep 1000"))
    reading = execution.output()
    assert (await anext(reading)).data == b"started\n"
    async with asyncio.timeout(_BOUND):
        await execution.kill()
        outcome = await execution.wait()
    assert not outcome.succeeded
    if implementation.tells_signals:
        assert outcome.signal == signal.SIGKILL
    assert outcome.stopped_by is None
    await execution.kill()


@one_shot
async def test_nothing_of_a_one_shot_sandbox_is_left(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec()
    async with asyncio.timeout(_BOUND):
        ran = await finish(await driver.run(spec, shell("sleep 1000 & setsid sleep 1000 & echo left")))
    assert (ran.stdout, ran.outcome.exit_code) == ("left\n", 0)
    assert spec.id not in [info.id for info in await driver.found()]


@one_shot
async def test_many_run_at_once_and_keep_apart(site: Site, driver: SandboxDriver) -> None:
    async def one(number: int) -> None:
        spec = site.spec(workspace=f"workspace-{number}")
        ran = await finish(await driver.run(spec, shell(f"echo {number} > mine; sleep 0.1; cat *")))
        assert (ran.stdout, ran.outcome.exit_code) == (f"{number}\n", 0)

    await asyncio.gather(*(one(number) for number in range(12)))


# The folder


@one_shot
async def test_files_are_the_agents_own_and_outlive_the_sandbox(
    implementation: Implementation, site: Site, driver: SandboxDriver
) -> None:
    if not implementation.binds_folders:
        return
    spec = site.spec()
    (site.workspace() / "given").write_text("given")
    ran = await finish(await driver.run(spec, shell("cat given; echo made > made; mkdir folder")))
    assert ran.stdout == "given"
    made = site.workspace() / "made"
    assert made.read_text() == "made\n"
    assert (made.stat().st_uid, made.stat().st_gid) == (site.owner.uid, site.owner.gid)


@one_shot
async def test_a_read_only_folder_cannot_be_changed(
    implementation: Implementation, site: Site, driver: SandboxDriver
) -> None:
    if not implementation.binds_folders or not implementation.is_isolated:
        return
    (site.workspace() / "given").write_text("given")
    ran = await finish(await driver.run(site.spec(is_read_only=True), shell("cat given; echo x > made; rm -f given")))
    assert ran.stdout == "given"
    assert not ran.outcome.succeeded
    assert [path.name for path in site.workspace().iterdir()] == ["given"]


@one_shot
async def test_a_folder_that_is_not_there_is_invalid(
    implementation: Implementation, site: Site, driver: SandboxDriver
) -> None:
    if implementation.binds_folders:
        with pytest.raises(InvalidInput):
            await driver.run(site.spec(folder=site.folder / "nowhere"), Command(argv=("true",)))


# Limits


@one_shot
async def test_a_command_that_takes_too_long_is_stopped_with_all_it_started(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec(limits=limited(max_execution_time=0.5))
    ran = await finish(await driver.run(spec, shell("sleep 1000 & sleep 1000")))
    assert ran.outcome.stopped_by is Limit.EXECUTION_TIME


@one_shot
async def test_a_commands_own_timeout_is_the_shorter_one(site: Site, driver: SandboxDriver) -> None:
    ran = await finish(await driver.run(site.spec(limits=_ROOMY), shell("sleep 1000", timeout=0.3)))
    assert ran.outcome.stopped_by is Limit.EXECUTION_TIME


@one_shot
async def test_output_without_end_is_cut_and_the_command_stopped(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec(limits=limited(max_output=100_000))
    ran = await finish(await driver.run(spec, Command(argv=("yes",))))
    assert ran.outcome.stopped_by is Limit.OUTPUT
    assert len(ran.stdout) == 100_000


@one_shot
async def test_a_command_that_takes_too_much_memory_is_stopped(site: Site, driver: SandboxDriver) -> None:
    site.require_groups()
    spec = site.spec(limits=limited(max_memory=64 << 20))
    ran = await finish(await driver.run(spec, shell("head -c 300000000 /dev/zero | tail")))
    assert ran.outcome.stopped_by is Limit.MEMORY


@one_shot
async def test_no_more_processes_are_made_than_may_be(site: Site, driver: SandboxDriver) -> None:
    site.require_groups()
    spec = site.spec(limits=limited(max_processes=10, max_execution_time=30))
    text = "i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; exit 0"
    ran = await finish(await driver.run(spec, shell(text)))
    assert ran.outcome.forks_refused or ran.outcome.stopped_by is Limit.PROCESSES
    assert "fork" in ran.stderr or ran.outcome.stopped_by is Limit.PROCESSES


_LEAVE = "i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; exit 0"
_BOMB = "b() { b | b & }; b"
_TRIES = 500


@pytest.mark.parametrize(
    "left", [_LEAVE, f"({_LEAVE}) & exit 0", f"{_BOMB}; exit 0", f"setsid sh -c '{_BOMB}' & exit 0"]
)
async def test_a_sandbox_that_leftovers_filled_works_again_and_says_whose_they_were(
    implementation: Implementation, site: Site, driver: SandboxDriver, left: str
) -> None:
    site.require_groups()
    spec = site.spec(limits=limited(max_processes=20, max_memory=1 << 30))
    await driver.create(spec)
    await driver.start(spec.id)
    is_told = implementation.keeps_leftovers and left == _LEAVE  # others may leave room, or end by themselves
    told: list[str] = []
    in_a_row = 0
    try:
        told += (await finish(await driver.exec(spec.id, shell(left)))).outcome.leftovers_of
        for _ in range(_TRIES):  # what runs on in the background takes its time to fill it
            ran = await finish(await driver.exec(spec.id, shell("/bin/true; /bin/true; echo on")))
            told += ran.outcome.leftovers_of
            in_a_row = in_a_row + 1 if ran.stdout == "on\n" else 0
            if in_a_row >= 3:
                break
    finally:
        await driver.stop(spec.id)
    assert in_a_row >= 3
    assert any(left in words for words in told) is (is_told or bool(told))


async def test_what_a_command_left_running_stays_while_there_is_room(
    implementation: Implementation, site: Site, driver: SandboxDriver
) -> None:
    site.require_groups()
    if not (implementation.keeps_leftovers and implementation.tells_leftovers_apart):
        return
    spec = site.spec(limits=limited(max_processes=20))
    await driver.create(spec)
    await driver.start(spec.id)
    await finish(await driver.exec(spec.id, shell("echo mine > note; sleep 1000 & echo $! > number; exit 0")))
    crowd = await finish(await driver.exec(spec.id, shell(_LEAVE)))
    ran = await finish(await driver.exec(spec.id, shell("kill -0 $(cat number) && echo there")))
    assert ran.stdout == "there\n"
    assert [words for words in (*crowd.outcome.leftovers_of, *ran.outcome.leftovers_of) if "note" in words] == []


@one_shot
async def test_who_wants_too_much_of_the_processor_is_slowed_down(site: Site, driver: SandboxDriver) -> None:
    site.require_groups()
    spec = site.spec(limits=limited(max_cpu=2))
    ran = await finish(await driver.run(spec, shell("timeout 1 sh -c 'while :; do :; done'; exit 0")))
    assert ran.outcome.slowed_down


@one_shot
async def test_what_fills_the_disk_is_stopped(
    implementation: Implementation, site: Site, driver: SandboxDriver
) -> None:
    spec = site.spec(limits=limited(max_disk=20 << 20))
    write = "head -c 10000000 /dev/zero > f$i || exit 9; sync f$i"
    text = f"i=0; while [ $i -lt 100 ]; do {write}; i=$((i+1)); sleep 0.05; done"
    ran = await finish(await driver.run(spec, shell(text)))
    assert ran.outcome.stopped_by is Limit.DISK
    if implementation.binds_folders:
        written = sum(path.stat().st_size for path in site.workspace().iterdir())
        assert written < 500_000_000


# Terminals


@one_shot
async def test_a_terminal_has_its_size_and_can_be_resized(site: Site, driver: SandboxDriver) -> None:
    size = TerminalSize(rows=33, columns=111)
    text = "stty size; echo err >&2; read go; stty size; test -t 0 && echo is-terminal"
    execution = await driver.run(site.spec(), shell(text, terminal=size, has_input=True))
    said = b""
    async with asyncio.timeout(_BOUND):
        reading = execution.output()
        while b"err" not in said:
            output = await anext(reading)
            assert output.stream is OutputStream.STDOUT
            said += output.data
        assert b"33 111" in said
        await execution.resize(TerminalSize(rows=44, columns=122))
        await execution.write(b"go\n")
        said += b"".join([output.data async for output in reading])
        assert (await execution.wait()).succeeded
    assert b"44 122" in said
    assert b"is-terminal" in said
    await execution.resize(TerminalSize())


@one_shot
async def test_an_interrupt_at_the_terminal_reaches_the_command(site: Site, driver: SandboxDriver) -> None:
    text = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done"
    execution = await driver.run(site.spec(), shell(text, terminal=TerminalSize(), has_input=True))
    said = b""
    async with asyncio.timeout(_BOUND):
        reading = execution.output()
        while b"ready" not in said:
            said += (await anext(reading)).data
        await execution.write(b"\x03")
        said += b"".join([output.data async for output in reading])
        outcome = await execution.wait()
    assert b"interrupted" in said
    assert outcome.exit_code == 5


@one_shot
async def test_only_a_terminal_can_be_resized(site: Site, driver: SandboxDriver) -> None:
    execution = await driver.run(site.spec(), Command(argv=("true",)))
    with pytest.raises(Conflict):
        await execution.resize(TerminalSize())
    await execution.wait()


# Sandboxes that stay


async def test_a_sandbox_is_created_started_stopped_and_removed(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec(labels={"session": "s1"})
    created = await driver.create(spec)
    assert (created.id, created.driver, created.labels) == (spec.id, driver.name, {"session": "s1"})
    assert created.state is SandboxState.CREATED
    assert (await driver.create(spec)).created_at == created.created_at
    for _ in range(2):
        await driver.start(spec.id)
        assert (await driver.inspect(spec.id)).state is SandboxState.RUNNING
    for _ in range(2):
        await driver.stop(spec.id)
        assert (await driver.inspect(spec.id)).state is SandboxState.STOPPED
    await driver.start(spec.id)
    assert (await finish(await driver.exec(spec.id, Command(argv=("true",))))).outcome.succeeded
    await driver.stop(spec.id)
    if not site.holds_files:
        await driver.remove(spec.id)
        with pytest.raises(NotFound):
            await driver.inspect(spec.id)


async def test_an_id_that_is_not_there_is_not_found(driver: SandboxDriver) -> None:
    nobody = SandboxId(str(uuid4()))
    calls = [
        driver.start(nobody),
        driver.stop(nobody),
        driver.remove(nobody),
        driver.inspect(nobody),
        driver.exec(nobody, Command(argv=("true",))),
        driver.copy_in(nobody, PurePosixPath("/workspace"), pieces(b"")),
        driver.stats(nobody),
        driver.connect(nobody, _SOCKET),
        all_of(driver.copy_out(nobody, PurePosixPath("/workspace"))),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            await call


async def test_nothing_runs_in_a_sandbox_that_does_not(site: Site, driver: SandboxDriver) -> None:
    spec = site.spec()
    await driver.create(spec)
    for call in (
        driver.exec(spec.id, Command(argv=("true",))),
        driver.stats(spec.id),
        driver.connect(spec.id, _SOCKET),
    ):
        with pytest.raises(Conflict):
            await call


async def test_commands_of_a_sandbox_share_its_files_and_processes(
    implementation: Implementation, driver: SandboxDriver, running: SandboxSpec
) -> None:
    first = await finish(await driver.exec(running.id, shell("echo kept > /tmp/note; echo there > file; sleep 1000 &")))
    assert first.outcome.succeeded
    second = await finish(await driver.exec(running.id, shell("cat /tmp/note file; ls /proc | grep -c '^[0-9]'")))
    assert second.stdout.startswith("kept\nthere\n")
    if implementation.is_isolated:
        assert int(second.stdout.split()[-1]) < 20


async def test_when_it_stopped_none_of_its_processes_is_there(
    implementation: Implementation, site: Site, driver: SandboxDriver, running: SandboxSpec
) -> None:
    beat = "while :; do echo x >> beat; sleep 0.01; done"
    # The command waits for the beat: until that is a session of its own it may end with the command.
    begun = f"setsid sh -c '{beat}' >/dev/null 2>&1 & until test -s beat; do sleep 0.01; done"
    await finish(await driver.exec(running.id, shell(begun)))
    await driver.stop(running.id)
    if implementation.binds_folders:
        size = (site.workspace() / "beat").stat().st_size
        await asyncio.sleep(0.1)
        assert (site.workspace() / "beat").stat().st_size == size
    await driver.start(running.id)
    kept = await finish(await driver.exec(running.id, shell("test -s beat && echo kept")))
    assert kept.stdout == "kept\n"


async def test_a_stop_ends_what_runs(driver: SandboxDriver, running: SandboxSpec) -> None:
    execution = await driver.exec(running.id, shell("sleep 1000"))
    async with asyncio.timeout(_BOUND):
        await driver.stop(running.id)
        assert not (await execution.wait()).succeeded


async def test_a_command_ends_with_its_first_process(driver: SandboxDriver, running: SandboxSpec) -> None:
    async with asyncio.timeout(_BOUND):
        ran = await finish(await driver.exec(running.id, shell("echo said; sleep 1000 & exit 0")))
    assert (ran.stdout, ran.outcome.exit_code) == ("said\n", 0)


async def test_a_timeout_ends_a_command_and_leaves_the_sandbox(driver: SandboxDriver, running: SandboxSpec) -> None:
    ran = await finish(await driver.exec(running.id, shell("sleep 1000", timeout=0.3)))
    assert ran.outcome.stopped_by is Limit.EXECUTION_TIME
    assert (await finish(await driver.exec(running.id, shell("echo on")))).stdout == "on\n"


async def test_a_driver_made_anew_knows_the_sandboxes(site: Site, driver: SandboxDriver, running: SandboxSpec) -> None:
    await finish(await driver.exec(running.id, shell("echo kept > /tmp/note")))
    later = site.spec(labels={"second": "yes"})
    await driver.create(later)
    await driver.close()
    another = site.driver()
    found = await another.found()
    assert [info.id for info in found] == [running.id, later.id]
    assert [info.state for info in found] == [SandboxState.RUNNING, SandboxState.CREATED]
    assert found[1].labels == {"second": "yes"}
    ran = await finish(await another.exec(running.id, shell("cat /tmp/note")))
    assert ran.stdout == "kept\n"
    await another.stop(running.id)
    assert (await another.inspect(running.id)).state is SandboxState.STOPPED


async def test_closing_ends_the_executions_and_keeps_the_sandboxes(
    site: Site, driver: SandboxDriver, running: SandboxSpec
) -> None:
    execution = await driver.exec(running.id, shell("sleep 1000"))
    async with asyncio.timeout(_BOUND):
        await driver.close()
        assert not (await execution.wait()).succeeded
    assert (await site.driver().inspect(running.id)).state is SandboxState.RUNNING


async def test_calls_on_one_sandbox_at_the_same_time_come_to_one_end(
    driver: SandboxDriver, running: SandboxSpec
) -> None:
    await asyncio.gather(*(driver.start(running.id) for _ in range(5)), *(driver.stop(running.id) for _ in range(5)))
    await driver.start(running.id)
    assert (await finish(await driver.exec(running.id, shell("echo on")))).stdout == "on\n"


async def test_stats_tell_what_a_sandbox_uses(site: Site, driver: SandboxDriver, running: SandboxSpec) -> None:
    site.require_groups()
    text = "head -c 10000000 /dev/zero | wc -c; sleep 1000 & sleep 1000 & echo all; wait"
    execution = await driver.exec(running.id, shell(text))
    said = b""
    async for output in execution.output():
        said += output.data
        if b"all" in said:
            break
    stats = await driver.stats(running.id)
    await execution.kill()
    assert stats.processes >= 2
    assert stats.memory > 0
    assert stats.cpu_seconds > 0


# Copying


async def test_what_is_copied_in_comes_out_again(driver: SandboxDriver, running: SandboxSpec) -> None:
    folder = tarfile.TarInfo("sub")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    link = tarfile.TarInfo("sub/link")
    link.type, link.linkname = tarfile.SYMTYPE, "../somewhere"
    program = tarfile.TarInfo("sub/ü")
    program.mode = 0o755
    sent = archive_of((folder, b""), file_member("empty", b""), (program, b"x" * 100_000), (link, b""))
    await driver.copy_in(running.id, PurePosixPath("/workspace/in"), pieces(sent))
    seen = await finish(
        await driver.exec(running.id, shell("cd in && stat -c '%U %a %n' empty sub sub/*; readlink sub/link"))
    )
    assert "agent" in seen.stdout.split()[0] or seen.stdout.split()[0] != "root"
    assert "../somewhere" in seen.stdout
    taken = await all_of(driver.copy_out(running.id, PurePosixPath("/workspace/in")))
    with tarfile.open(fileobj=io.BytesIO(taken)) as archive:
        members = {member.name.removeprefix("./"): member for member in archive if member.name != "."}
        assert set(members) == {"empty", "sub", "sub/ü", "sub/link"}
        assert members["sub/ü"].mode & 0o111
        content = archive.extractfile(members["sub/ü"])
        assert content is not None
        assert content.read() == b"x" * 100_000
        assert members["sub/link"].linkname == "../somewhere"


async def test_what_would_land_outside_is_refused(driver: SandboxDriver, running: SandboxSpec) -> None:
    link = tarfile.TarInfo("out")
    link.type, link.linkname = tarfile.SYMTYPE, "/home"
    device = tarfile.TarInfo("device")
    device.type = tarfile.CHRTYPE
    hard = tarfile.TarInfo("hard")
    hard.type, hard.linkname = tarfile.LNKTYPE, "../../etc/passwd"
    hostile = [
        archive_of(file_member("../escaped")),
        archive_of(file_member("/home/agent/escaped")),
        archive_of(file_member("a/../../escaped")),
        archive_of((link, b""), file_member("out/escaped")),
        archive_of((hard, b"")),
        archive_of((device, b"")),
        b"no archive at all" * 100,
    ]
    for archive in hostile:
        with pytest.raises(InvalidInput):
            await driver.copy_in(running.id, PurePosixPath("/workspace/in"), pieces(archive))
    await finish(await driver.exec(running.id, shell("ln -s /home/agent in/lasting")))
    with pytest.raises(InvalidInput):
        await driver.copy_in(
            running.id, PurePosixPath("/workspace/in"), pieces(archive_of(file_member("lasting/escaped")))
        )
    found = await finish(await driver.exec(running.id, shell("ls /tmp /workspace / /home /home/agent")))
    assert "escaped" not in found.stdout


async def test_a_stopped_sandbox_gives_the_same_archive_each_time(driver: SandboxDriver, running: SandboxSpec) -> None:
    text = "mkdir -p b/c; for n in 3 1 2; do echo $n > b/$n; done; ln -s x l; echo deep > b/c/d"
    await finish(await driver.exec(running.id, shell(text)))
    await driver.stop(running.id)
    first = await all_of(driver.copy_out(running.id, PurePosixPath("/workspace")))
    assert first == await all_of(driver.copy_out(running.id, PurePosixPath("/workspace")))
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        names = {member.name.removeprefix("./") for member in archive}
    assert names >= {"b", "b/1", "b/2", "b/3", "b/c", "b/c/d", "l"}


async def test_a_folder_that_is_not_there_cannot_be_copied_out(driver: SandboxDriver, running: SandboxSpec) -> None:
    with pytest.raises(InvalidInput):
        await all_of(driver.copy_out(running.id, PurePosixPath("/workspace/nowhere")))


# Sockets

_ECHO = """
import socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
while True:
    connection, _ = listening.accept()
    while data := connection.recv(1000):
        connection.sendall(data.upper())
    connection.sendall(b'end')
    connection.close()
"""


async def test_a_program_that_listens_inside_is_talked_to(
    site: Site, driver: SandboxDriver, running: SandboxSpec
) -> None:
    command = Command(argv=(site.require_python(), "-c", _ECHO, _SOCKET.name))
    listening = await driver.exec(running.id, command)
    await until_there(driver, running, _SOCKET.name)
    async with asyncio.timeout(_BOUND):
        channel = await driver.connect(running.id, _SOCKET)
        await channel.send(b"hello")
        assert await channel.receive() == b"HELLO"
        await channel.end_sending()
        assert await channel.receive() == b"end"
        assert await channel.receive() == b""
        await channel.close()
        await listening.kill()


async def test_nobody_listens_on_a_socket_that_is_not_there(driver: SandboxDriver, running: SandboxSpec) -> None:
    with pytest.raises(Unavailable):
        await driver.connect(running.id, _SOCKET)


# What a driver does not offer


async def test_a_sandbox_without_a_folder_is_refused_where_it_holds_no_files(
    implementation: Implementation, driver: SandboxDriver
) -> None:
    spec = SandboxSpec(id=SandboxId(str(uuid4())), folder=None)
    if not implementation.can_hold_files:
        with pytest.raises(InvalidInput):
            await driver.create(spec)


@one_shot
async def test_a_home_of_this_machine_outlives_the_sandbox(site: Site, driver: SandboxDriver) -> None:
    home = site.workspace("home-of-a-session")
    for text, seen in (("echo one > ~/kept && cat ~/kept", "one\n"), ("cat ~/kept && echo two >> ~/kept", "one\n")):
        spec = site.spec(home=home, limits=_ROOMY)
        await driver.create(spec)
        await driver.start(spec.id)
        finished = await finish(await driver.exec(spec.id, shell(text)))
        assert (finished.outcome.exit_code, finished.stdout) == (0, seen), finished.stderr
        await driver.remove(spec.id)
    assert (home / "kept").read_text() == "one\ntwo\n"


@one_shot
async def test_a_single_command_has_a_home_of_this_machine_too(site: Site, driver: SandboxDriver) -> None:
    home = site.workspace("home-of-a-command")
    finished = await site.once(driver, site.spec(home=home, limits=_ROOMY), shell("echo kept > ~/kept"))
    assert finished.outcome.succeeded, finished.stderr
    assert (home / "kept").read_text() == "kept\n"


@one_shot
async def test_a_folder_of_this_machine_is_shown_to_read_only(
    site: Site, driver: SandboxDriver, implementation: Implementation
) -> None:
    program = site.workspace("programs") / "hello"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    shown = ((program.parent, PurePosixPath("/opt/agents/hello")), (program.parent, PurePosixPath("/opt/other")))
    spec = site.spec(read_only=shown, home=site.workspace("home"), limits=_ROOMY)
    if not implementation.is_isolated:
        with pytest.raises(InvalidInput):
            await driver.create(spec)
        return
    again = site.driver()  # a driver made anew knows what the sandbox is shown
    await driver.create(spec)
    await again.start(spec.id)
    finished = await finish(await again.exec(spec.id, shell("/opt/agents/hello/hello && /opt/other/hello")))
    assert (finished.outcome.exit_code, finished.stdout) == (0, "hello\nhello\n"), finished.stderr
    finished = await finish(await again.exec(spec.id, shell("touch /opt/agents/hello/new || echo refused")))
    assert finished.stdout == "refused\n"
    assert program.read_text() == "#!/bin/sh\necho hello\n"


@pytest.mark.parametrize("target", ["/usr/bin", "/opt", "/opt/../usr", "opt/x", "/workspace/x"], ids=str)
def test_a_folder_is_shown_below_opt_alone(tmp_path: Path, target: str) -> None:
    with pytest.raises(InvalidInput):
        SandboxSpec(id=SandboxId(str(uuid4())), folder=tmp_path, read_only=((tmp_path, PurePosixPath(target)),))


async def test_a_sandbox_with_its_own_files_is_shown_no_folder_of_this_machine(
    site: Site, driver: SandboxDriver, tmp_path: Path
) -> None:
    if site.holds_files:
        with pytest.raises(InvalidInput):
            await driver.create(site.spec(home=tmp_path))
