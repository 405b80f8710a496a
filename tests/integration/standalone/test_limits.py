"""Each limit, by going over it; and that nothing a command starts goes on after it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.sandboxes import Site

from contextbase.errors import InvalidInput, MachineProblem
from contextbase.limits import Limit, ResourceLimits
from contextbase.standalone import RunResult
from contextbase.standalone.command import run_command

_REPOSITORY = Path(__file__).parents[3]
_NO_LIMITS = ResourceLimits(max_memory=None, max_cpu=None, max_processes=None, max_execution_time=None, max_output=None)


def run(
    *command: str,
    folder: Path,
    max_memory: int | None = None,
    max_cpu: float | None = None,
    max_processes: int | None = None,
    max_execution_time: float | None = 60,
    max_output: int | None = None,
    max_disk: int | None = None,
) -> RunResult:
    limits = ResourceLimits(
        max_memory=max_memory,
        max_cpu=max_cpu,
        max_processes=max_processes,
        max_execution_time=max_execution_time,
        max_output=max_output,
        max_disk=max_disk,
    )
    return run_command(command, folder=folder, limits=limits, environment={})


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_a_command_within_its_limits_runs_and_answers(site: Site) -> None:
    site.put("a.txt", "hello\n")
    worker = site.worker("one", "a.txt")
    done = worker.run(["sh", "-c", "cat a.txt; echo oops >&2; echo new > b.txt; exit 3"])
    assert (done.exit_code, done.stdout, done.stderr, done.stopped_by) == (3, b"hello\n", b"oops\n", None)
    assert not done.succeeded
    assert worker.path_of("b.txt").read_text() == "new\n"
    assert not (site.base / "b.txt").exists()


def test_one_process_gets_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    done = run(*python("bytearray(200 << 20)"), folder=tmp_path, max_memory=100 << 20)
    assert done.exit_code == 1
    assert b"MemoryError" in done.stderr


def test_processes_that_take_too_much_memory_together_are_stopped(tmp_path: Path) -> None:
    code = "import os, time\nfor _ in range(4): os.fork()\nkept = bytearray(40 << 20)\ntime.sleep(300)"
    done = run(*python(code), folder=tmp_path, max_memory=150 << 20)
    assert done.stopped_by is Limit.MEMORY
    assert done.peak_memory > 150 << 20
    assert not done.succeeded


def test_too_many_processes_are_stopped(tmp_path: Path) -> None:
    done = run("sh", "-c", "for n in 1 2 3 4 5 6; do sleep 300 & done; wait", folder=tmp_path, max_processes=4)
    assert done.stopped_by is Limit.PROCESSES


def test_a_command_that_takes_too_long_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    done = run("sh", "-c", "sleep 300 & echo $!; wait", folder=tmp_path, max_execution_time=2)
    assert (done.stopped_by, done.exit_code) == (Limit.EXECUTION_TIME, -signal.SIGKILL)
    assert not Path("/proc", done.stdout.decode().strip()).exists()


def test_files_that_are_too_large_together_are_stopped(tmp_path: Path) -> None:
    text = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; sync f$i; sleep 0.02; done"
    done = run("sh", "-c", text, folder=tmp_path, max_disk=8 << 20)
    assert (done.stopped_by, done.succeeded) == (Limit.DISK, False)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) > 8 << 20


def test_one_file_gets_no_larger_than_the_limit(tmp_path: Path) -> None:
    done = run("sh", "-c", "exec head -c 100000000 /dev/zero > big", folder=tmp_path, max_disk=8 << 20)
    assert done.stopped_by is Limit.DISK
    assert (tmp_path / "big").stat().st_size <= 8 << 20


def test_a_command_that_ends_before_its_files_are_counted_is_told_that_they_are_too_large(tmp_path: Path) -> None:
    text = "for i in 1 2 3; do head -c 6000000 /dev/zero > f$i; done; sync f1 f2 f3"
    assert run("sh", "-c", text, folder=tmp_path, max_disk=8 << 20).stopped_by is Limit.DISK


def test_what_a_worker_writes_to_its_home_and_its_temporary_files_counts(site: Site) -> None:
    worker = site.worker("one", limits=ResourceLimits(max_disk=8 << 20))
    for place in ("$HOME", "$TMPDIR"):
        text = f'i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > "{place}/f$i"; sync "{place}/f$i"; done'
        assert worker.run(["sh", "-c", text]).stopped_by is Limit.DISK


def test_a_worker_within_its_disk_limit_is_not_stopped_for_what_was_there_before(site: Site) -> None:
    site.put("big.bin", b"x" * (10 << 20))
    worker = site.worker("one", "big.bin", limits=ResourceLimits(max_disk=8 << 20))
    done = worker.run(["sh", "-c", "head -c 1000000 /dev/zero > new; sync new; sleep 0.5"])
    assert (done.stopped_by, done.exit_code) == (None, 0)


def test_output_without_end_is_cut_and_the_command_stopped(tmp_path: Path) -> None:
    done = run("yes", folder=tmp_path, max_output=1000)
    assert (done.stopped_by, len(done.stdout)) == (Limit.OUTPUT, 1000)


def test_who_wants_too_much_of_the_processor_is_slowed_down(tmp_path: Path) -> None:
    code = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
    done = run(*python(code), folder=tmp_path, max_cpu=10)
    assert done.exit_code == 0
    assert done.cpu_seconds <= 0.1 * done.seconds + 0.3  # a burst; a busy machine notices late, but gives less, too
    assert done.slowed_down or done.cpu_seconds < 0.3


def test_without_limits_nothing_is_limited(tmp_path: Path) -> None:
    code = "import time\nkept = bytearray(600 << 20)\nwhile time.process_time() < 0.3: pass\nprint('x' * (11 << 20))"
    done = run_command(python(code), folder=tmp_path, limits=_NO_LIMITS, environment={})
    assert (done.exit_code, done.slowed_down, len(done.stdout)) == (0, False, (11 << 20) + 1)


def test_strays_that_detach_themselves_end_with_the_command(tmp_path: Path) -> None:
    code = f"""
import os, subprocess
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({str(tmp_path / "stray")!r}, "w").write(str(os.getpid()))
        os.execvp("sleep", ["sleep", "300"])
    os._exit(0)
while not os.path.exists({str(tmp_path / "stray")!r}) or not open({str(tmp_path / "stray")!r}).read(): pass
"""
    done = run(*python(code), folder=tmp_path)
    assert done.exit_code == 0
    assert not Path("/proc", (tmp_path / "stray").read_text()).exists()


def test_nothing_runs_on_when_its_caller_is_killed(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from contextbase.limits import ResourceLimits
from contextbase.standalone.command import run_command
command = ["sh", "-c", "echo $$ > pid.new; mv pid.new pid; sleep 300"]
run_command(command, folder=Path({str(tmp_path)!r}), limits=ResourceLimits(), environment={{}})
"""
    caller = subprocess.Popen(python(code), cwd=_REPOSITORY)
    try:
        assert _appears(tmp_path / "pid")
    finally:
        caller.kill()
        caller.wait()
    assert _disappears(Path("/proc", (tmp_path / "pid").read_text().strip()))


def test_a_command_sees_nothing_of_our_environment_but_the_allowed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    worker = site.worker("one")
    done = worker.run(["env"], environment={"GIVEN": "yes"})
    seen = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    assert "API_KEY" not in seen
    assert (seen["GIVEN"], seen["LANG"]) == ("yes", "C.UTF-8")
    assert seen["HOME"] == str(site.root / "one/home")
    assert seen["TMPDIR"] == str(site.root / "one/tmp")


def test_a_command_that_is_not_there_fails_as_in_a_shell(tmp_path: Path) -> None:
    done = run("no-such-program", folder=tmp_path)
    assert (done.exit_code, done.stderr) == (127, b"no-such-program: No such file or directory\n")
    with pytest.raises(InvalidInput):
        run(folder=tmp_path)
    with pytest.raises(MachineProblem, match="nowhere"):
        run("true", folder=tmp_path / "nowhere")


def test_output_is_passed_on_while_the_command_runs(tmp_path: Path) -> None:
    pieces: list[tuple[str, bytes]] = []
    limits = ResourceLimits()
    command = ["sh", "-c", "echo out; echo err >&2"]
    run_command(command, folder=tmp_path, limits=limits, environment={}, on_output=lambda *said: pieces.append(said))
    assert sorted(pieces) == [("stderr", b"err\n"), ("stdout", b"out\n")]


def test_an_error_while_it_runs_ends_the_command(tmp_path: Path) -> None:
    def fail(_stream: str, piece: bytes) -> None:
        raise ValueError(piece.decode())

    command = ["sh", "-c", "echo $$; sleep 300"]
    with pytest.raises(ValueError, match=r"\d+") as raised:
        run_command(command, folder=tmp_path, limits=ResourceLimits(), environment={}, on_output=fail)
    assert not Path("/proc", str(raised.value).strip()).exists()


def test_our_open_files_are_not_the_commands(tmp_path: Path) -> None:
    done = run("sh", "-c", "ls /proc/self/fd", folder=tmp_path)
    assert len(done.stdout.split()) == 4  # standard input, output, error, and the listing's own


@pytest.mark.parametrize("name", ["max_memory", "max_cpu", "max_processes", "max_execution_time", "max_output"])
def test_a_limit_is_more_than_nothing(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        ResourceLimits(**{name: 0})


def _appears(path: Path) -> bool:
    return _becomes(path, there=True)


def _disappears(path: Path) -> bool:
    return _becomes(path, there=False)


def _becomes(path: Path, *, there: bool) -> bool:
    for _ in range(2000):
        if os.path.lexists(path) is there:
            return True
        time.sleep(0.01)
    return False
