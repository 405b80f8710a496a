"""What is Docker's own: how its containers are made, and what becomes of them in trouble."""

import asyncio
import io
import os
import subprocess
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import pytest
from tests.support.docker_engine import DockerEngine

from contextbase.errors import Conflict, InvalidInput, MachineProblem, NotFound, Unavailable
from contextbase.ids import ContentHash
from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox.docker import DockerDriver
from contextbase.sandbox.docker.engine import Engine
from contextbase.sandbox.model import (
    WORKSPACE,
    Command,
    CommandOutcome,
    SandboxId,
    SandboxSpec,
    StorageProof,
    TerminalSize,
)
from contextbase.workspaces.model import Owner

AGENT = Owner(uid=61184, gid=61184)
LIMITS = ResourceLimits(
    max_memory=128 << 20, max_cpu=100, max_processes=40, max_execution_time=60, max_output=8 << 20, max_disk=64 << 20
)


@pytest.fixture
async def driver(docker_engine: DockerEngine) -> AsyncIterator[DockerDriver]:
    node = f"test-{uuid4().hex[:12]}"
    made = DockerDriver(node=node, owner=AGENT, image=docker_engine.image, address=docker_engine.address)
    yield made
    await made.close()
    docker_engine.remove_containers(node)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    os.chown(made, AGENT.uid, AGENT.gid)
    return made


def spec_of(folder: Path | None, limits: ResourceLimits = LIMITS) -> SandboxSpec:
    return SandboxSpec(id=SandboxId(uuid4().hex), folder=folder, limits=limits)


async def started(driver: DockerDriver, folder: Path | None, limits: ResourceLimits = LIMITS) -> SandboxId:
    spec = spec_of(folder, limits)
    await driver.create(spec)
    await driver.start(spec.id)
    return spec.id


async def said(
    driver: DockerDriver, sandbox_id: SandboxId, script: str, seconds: float = 60
) -> tuple[str, CommandOutcome]:
    execution = await driver.exec(sandbox_id, Command(argv=("/bin/sh", "-c", script), timeout=seconds))
    written = b"".join([piece.data async for piece in execution.output()])
    return written.decode(), await execution.wait()


def archive_of(**files: bytes) -> AsyncIterator[bytes]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

    async def pieces() -> AsyncIterator[bytes]:
        yield packed.getvalue()

    return pieces()


async def files_in(driver: DockerDriver, sandbox_id: SandboxId) -> tuple[dict[str, bytes | None], StorageProof]:
    packed = b"".join([piece async for piece in driver.copy_out(sandbox_id, WORKSPACE)])
    found: dict[str, bytes | None] = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            opened = archive.extractfile(member) if member.isreg() else None
            found[member.name] = opened.read() if opened else None
    return found, StorageProof(archive=ContentHash.of(packed))


async def test_the_kernel_and_the_engine_agree_that_a_container_is_kept_in(
    driver: DockerDriver, docker_engine: DockerEngine, folder: Path
) -> None:
    for place in (folder, None):
        sandbox_id = await started(driver, place)
        status, _ = await said(driver, sandbox_id, "cat /proc/self/status; cat /proc/1/comm; id -u; cat /proc/mounts")
        words = status.split()
        for name, value in {"CapEff:": "0" * 16, "CapBnd:": "0" * 16, "NoNewPrivs:": "1", "Seccomp:": "2"}.items():
            assert words[words.index(name) + 1] == value
        assert str(AGENT.uid) in words
        assert "docker-init" in words  # reaps what is left behind
        root_options = next(line.split()[3] for line in status.splitlines() if " / overlay " in line)
        assert root_options.startswith("ro," if place else "rw,")
        (container,) = docker_engine.containers(str(sandbox_id))
        host = container["HostConfig"]
        assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (128 << 20, 128 << 20, 10**9)
        assert host["LogConfig"]["Type"] == "none"
        assert host["NetworkMode"] == "none"
        assert not host["AutoRemove"]
        assert not host["Privileged"]
        if place is None:
            assert not container["Mounts"]
            assert not host.get("Tmpfs")
            assert host["RestartPolicy"]["Name"] == "unless-stopped"
        else:
            assert [mount["Source"] for mount in container["Mounts"]] == [str(folder)]
            assert host["RestartPolicy"]["Name"] in {"", "no"}


async def test_a_hundred_containers_idle_at_once(driver: DockerDriver, folder: Path) -> None:
    specs = [spec_of(folder) for _ in range(100)]

    async def begin(spec: SandboxSpec) -> None:
        await driver.create(spec)
        await driver.start(spec.id)

    await asyncio.gather(*(begin(spec) for spec in specs))
    assert {info.id for info in await driver.found()} == {spec.id for spec in specs}
    _, outcome = await said(driver, specs[57].id, "true")
    assert outcome.succeeded
    await asyncio.gather(*(driver.remove(spec.id) for spec in specs))
    assert await driver.found() == []


async def test_a_sandbox_full_of_processes_still_ends_its_command(driver: DockerDriver, folder: Path) -> None:
    sandbox_id = await started(driver, folder)
    fill = "for i in $(seq 39); do sleep 60 >/dev/null 2>&1 & done; exec sleep 60"
    execution = await driver.exec(sandbox_id, Command(argv=("/bin/sh", "-c", fill)))
    async with asyncio.timeout(60):
        for _ in range(1000):
            if (await driver.stats(sandbox_id)).processes == 42:  # with our own two
                break
            await asyncio.sleep(0.05)
        await execution.kill()
        assert (await execution.wait()).signal == 9


async def test_a_command_that_closes_its_output_goes_on(driver: DockerDriver, folder: Path) -> None:
    sandbox_id = await started(driver, folder)
    _, outcome = await said(driver, sandbox_id, "exec >&- 2>&-; sleep 1; exit 3")
    assert outcome.exit_code == 3


async def test_a_command_whose_reader_leaves_ends_for_who_waits(driver: DockerDriver, folder: Path) -> None:
    sandbox_id = await started(driver, folder)
    execution = await driver.exec(sandbox_id, Command(argv=("/bin/sh", "-c", "head -c 3000000 /dev/zero"), timeout=30))
    reader = execution.output()
    await anext(reader)
    waiting = asyncio.create_task(execution.wait())
    await asyncio.sleep(0)
    with pytest.raises(Conflict):
        await anext(execution.output())
    await reader.aclose()
    assert (await waiting).succeeded


async def test_who_halts_our_own_programs_inside_loses_the_sandbox_and_not_us(
    driver: DockerDriver, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextbase.sandbox.docker.inside._KILL_SECONDS", 1)
    sandbox_id = await started(driver, folder)
    halt = "import os\nwhile True:\n for p in os.listdir('/proc'):\n  if p.isdigit() and int(p) > os.getpid():\n"
    halt += "   try: os.kill(int(p), 19)\n   except OSError: pass\n"
    halting = await driver.exec(sandbox_id, Command(argv=("python3", "-c", halt)))
    async with asyncio.timeout(60):
        await halting.kill()
        assert not (await halting.wait()).succeeded


async def test_a_container_that_outgrows_its_disk_is_told_so(driver: DockerDriver) -> None:
    sandbox_id = await started(driver, None)
    fill = "i=0; while :; do dd if=/dev/zero of=part-$i bs=1M count=20 2>/dev/null; i=$((i+1)); sleep 0.1; done"
    _, outcome = await said(driver, sandbox_id, fill)
    assert outcome.stopped_by is Limit.DISK


async def test_links_of_the_agent_lead_nothing_that_is_copied_in_out_of_the_folder(driver: DockerDriver) -> None:
    sandbox_id = await started(driver, None)
    await said(driver, sandbox_id, "mkdir /tmp/other; ln -s /tmp/other way; ln -s /tmp/other/file file")
    with pytest.raises(InvalidInput, match="through a link"):
        await driver.copy_in(sandbox_id, WORKSPACE, archive_of(way__inner=b"inner"))
    await driver.copy_in(sandbox_id, WORKSPACE, archive_of(file=b"instead"))
    listed, _ = await said(driver, sandbox_id, "ls -A /tmp/other; cat file")
    assert listed == "instead"


async def test_a_stopped_container_gives_what_even_its_agent_may_not_read(driver: DockerDriver) -> None:
    sandbox_id = await started(driver, None)
    await said(driver, sandbox_id, "echo secret > closed; chmod 0 closed; mkdir away; echo x > away/x; chmod 0 away")
    with pytest.raises(Conflict, match="closed"):
        await files_in(driver, sandbox_id)
    await driver.stop(sandbox_id)
    found, proof = await files_in(driver, sandbox_id)
    assert found == {"closed": b"secret\n", "away": None, "away/x": b"x\n"}
    await driver.remove(sandbox_id, proof=proof)
    with pytest.raises(NotFound):
        await driver.inspect(sandbox_id)


async def test_files_that_came_after_the_proof_keep_the_container(driver: DockerDriver) -> None:
    sandbox_id = await started(driver, None)
    await driver.stop(sandbox_id)
    _, proof = await files_in(driver, sandbox_id)
    await driver.start(sandbox_id)
    await said(driver, sandbox_id, "echo later > later")
    with pytest.raises(Conflict, match="not those that were stored"):
        await driver.remove(sandbox_id, proof=proof)
    found, _ = await files_in(driver, sandbox_id)
    assert found == {"later": b"later\n"}


async def test_the_keys_that_detach_a_terminal_elsewhere_reach_the_command(driver: DockerDriver, folder: Path) -> None:
    sandbox_id = await started(driver, folder)
    script = "stty raw -echo; printf ready; head -c 3 | cat -v"
    command = Command(argv=("/bin/sh", "-c", script), has_input=True, terminal=TerminalSize(), timeout=30)
    execution = await driver.exec(sandbox_id, command)
    written = b""
    async with aclosing(execution.output()) as output:
        async for piece in output:
            if not written:
                await execution.write(b"\x10\x11!")
            written += piece.data
    assert written == b"ready^P^Q!"
    assert (await execution.wait()).succeeded


async def test_the_values_of_variables_are_in_no_list_of_processes(driver: DockerDriver, folder: Path) -> None:
    spec = replace(spec_of(folder), environment={"OF_SPEC": "first-secret-value"})
    await driver.create(spec)
    await driver.start(spec.id)
    command = Command(argv=("sleep", "60"), environment={"OF_COMMAND": "second-secret-value"})
    execution = await driver.exec(spec.id, command)
    lines = b""
    for listed in await asyncio.to_thread(lambda: list(Path("/proc").glob("[0-9]*/cmdline"))):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            lines += await asyncio.to_thread(listed.read_bytes)
    assert b"sleep\x0060" in lines
    assert b"-secret-value" not in lines
    await execution.kill()


@contextmanager
def overlay(folder: Path) -> Iterator[Path]:
    for name in ("lower", "upper", "work", "merged"):
        (folder / name).mkdir()
        os.chown(folder / name, AGENT.uid, AGENT.gid)
    options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, folder / "merged"], check=True)
    try:
        yield folder / "merged"
    finally:
        subprocess.run(["umount", folder / "merged"], check=True)


async def test_a_workspace_that_is_a_mount_can_be_unmounted_after_its_container(
    driver: DockerDriver, tmp_path: Path
) -> None:
    with overlay(tmp_path) as merged:
        sandbox_id = await started(driver, merged)
        await said(driver, sandbox_id, "echo text > made")
        await driver.stop(sandbox_id)
        found, _ = await files_in(driver, sandbox_id)
        await driver.remove(sandbox_id)
    assert found == {"made": b"text\n"}
    assert (tmp_path / "upper/made").read_text() == "text\n"


class LateClock:
    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=1100)


async def test_what_a_single_command_left_behind_is_swept_away(
    driver: DockerDriver, docker_engine: DockerEngine, folder: Path
) -> None:
    spec = spec_of(folder, replace(LIMITS, max_execution_time=1000))
    execution = await driver.run(spec, Command(argv=("sleep", "600")))
    later = DockerDriver(
        node=driver._node, owner=AGENT, image=docker_engine.image, address=docker_engine.address, clock=LateClock()
    )
    for each, left in ((driver, 1), (later, 0)):
        assert await each.found() == []
        assert len(docker_engine.containers(driver._node)) == left
    assert not (await execution.wait()).succeeded
    await later.close()


async def test_a_storm_of_starts_or_ends_is_spread(
    docker_engine: DockerEngine, driver: DockerDriver, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careful = DockerDriver(
        node=driver._node, owner=AGENT, image=docker_engine.image, address=docker_engine.address, most_at_once=2
    )
    at_once, most = Counter[str](), Counter[str]()

    def counted(name: str) -> None:
        ask = getattr(Engine, name)

        async def counting(*arguments: Any, **options: Any) -> None:
            at_once[name] += 1
            most[name] = max(most[name], at_once[name])
            await ask(*arguments, **options)
            at_once[name] -= 1

        monkeypatch.setattr(Engine, name, counting)

    for name in ("start", "stop", "remove"):
        counted(name)
    made = await asyncio.gather(*(started(careful, folder) for _ in range(6)))
    await asyncio.gather(*(careful.remove(sandbox_id) for sandbox_id in made))
    assert most == {"start": 2, "stop": 2, "remove": 2}
    await careful.close()


async def test_an_engine_that_is_not_there_is_named(folder: Path) -> None:
    lonely = DockerDriver(node="test", owner=AGENT, image="none", address="unix:///nowhere/docker.sock", timeout=5)
    for call in (
        lonely.create(spec_of(folder)),
        lonely.found(),
        lonely.exec(SandboxId(uuid4().hex), Command(argv=("x",))),
    ):
        with pytest.raises(Unavailable, match="/nowhere/docker"):
            await call
    await lonely.close()


async def test_an_image_that_is_not_there_is_the_operators_business(docker_engine: DockerEngine, folder: Path) -> None:
    bare = DockerDriver(node="test", owner=AGENT, image="never-built:latest", address=docker_engine.address)
    with pytest.raises(MachineProblem, match="docker build -t never-built:latest"):
        await bare.create(spec_of(folder))
    await bare.close()


async def test_a_folder_that_is_not_there_is_refused(driver: DockerDriver, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        await driver.create(spec_of(tmp_path / "nothing"))


async def test_agents_are_neither_root_nor_who_holds_the_container() -> None:
    with pytest.raises(InvalidInput, match="root"):
        DockerDriver(node="test", owner=Owner(uid=0, gid=0), image="any")
    with pytest.raises(InvalidInput, match="nobody"):
        DockerDriver(node="test", owner=Owner(uid=65_534, gid=65_534), image="any")


async def test_a_relay_that_the_image_lacks_is_named(driver: DockerDriver) -> None:
    spec = replace(spec_of(None), environment={"PATH": "/nowhere"})
    await driver.create(spec)
    await driver.start(spec.id)
    with pytest.raises(MachineProblem, match="python3"):
        await driver.connect(spec.id, PurePosixPath("/tmp/socket"))  # noqa: S108 - inside
