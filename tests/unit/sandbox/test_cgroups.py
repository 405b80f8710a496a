"""Where control groups are found, and what is written and read there, on folders that look like the kernel's."""

import os
from pathlib import Path

import pytest

from contextbase.limits import ResourceLimits
from contextbase.sandbox.cgroups import SeparateGroups, UnifiedGroup, Usage, find_groups, group_at

LIMITS = ResourceLimits(max_memory=1 << 20, max_cpu=150, max_processes=7)


class Kernel:
    """A folder whose groups get their files when they are made, as the kernel does it."""

    def __init__(self, folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._files = files
        make = Path.mkdir

        def making(place: Path, *arguments: object, **options: object) -> None:
            make(place, *arguments, **options)  # type: ignore[arg-type] # passed on as they came
            if place.is_relative_to(folder):
                self.fill(place)

        monkeypatch.setattr(Path, "mkdir", making)

    def fill(self, place: Path) -> None:
        for name, text in self._files.items():
            if not (place / name).exists():
                (place / name).write_text(text)

    def read(self, path: str) -> str:
        return (self.folder / path).read_text()


UNIFIED = {
    "cgroup.controllers": "cpuset cpu io memory pids",
    "cgroup.procs": "",
    "cgroup.subtree_control": "",
    "memory.max": "max",
    "memory.swap.max": "max",
    "pids.max": "max",
    "cpu.max": "max 100000",
}


@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    folder = tmp_path / "cgroup with space"
    folder.mkdir()
    kernel = Kernel(folder, UNIFIED, monkeypatch)
    kernel.fill(folder)
    own = folder / "system.slice" / "contextbase.service"
    own.mkdir(parents=True)
    return kernel


def unified_mounts(folder: Path) -> str:
    place = str(folder).replace(" ", "\\040")
    return f"24 1 0:22 / /sys rw - sysfs sysfs rw\n35 24 0:30 / {place} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def test_the_groups_of_version_2_are_below_our_own_and_have_their_limits(unified: Kernel) -> None:
    group, sentence = find_groups(
        "node", own="0::/system.slice/contextbase.service\n", mounts=unified_mounts(unified.folder)
    )
    assert isinstance(group, UnifiedGroup)
    assert "version 2" in sentence
    node = "system.slice/contextbase.service/contextbase-node"
    assert group.folder == unified.folder / node
    sandbox = group.below("one")
    sandbox.make(LIMITS, extra_processes=3)
    leaf = sandbox.below("leaf")
    leaf.make(ResourceLimits(max_memory=None, max_cpu=None, max_processes=None))
    assert unified.read(f"{node}/one/memory.max") == str(1 << 20)
    assert unified.read(f"{node}/one/memory.swap.max") == "0"
    assert unified.read(f"{node}/one/pids.max") == "10"
    assert unified.read(f"{node}/one/cpu.max") == "150000 100000"
    assert unified.read(f"{node}/one/leaf/memory.max") == "max"
    for above in ("system.slice/contextbase.service", node, f"{node}/one"):
        assert unified.read(f"{above}/cgroup.subtree_control") == "+memory +pids +cpu"
    assert unified.read(f"{node}/one/leaf/cgroup.subtree_control") == ""
    assert group_at(leaf.place) == leaf
    assert leaf.members == (str(leaf.folder / "cgroup.procs"),)


def test_a_group_with_our_process_in_it_hands_its_controllers_down_from_a_leaf(
    unified: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = unified.folder / "system.slice" / "contextbase.service"
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    write = Path.write_text

    def writing(place: Path, text: str, **options: str) -> int:
        if place == own / "cgroup.subtree_control" and (own / "cgroup.procs").read_text():
            raise OSError(16, "Device or resource busy", str(place))
        if place == own / "server" / "cgroup.procs" and text:
            write(own / "cgroup.procs", "")
        return write(place, text, **options)

    monkeypatch.setattr(Path, "write_text", writing)
    group, _ = find_groups("node", own="0::/system.slice/contextbase.service\n", mounts=unified_mounts(unified.folder))
    assert group is not None
    assert (own / "server" / "cgroup.procs").read_text() == str(os.getpid())


def test_what_version_2_tells_is_read(tmp_path: Path) -> None:
    for name, text in {
        "memory.current": "100\n",
        "memory.peak": "200\n",
        "cpu.stat": "usage_usec 1500000\nuser_usec 1\nnr_throttled 4\n",
        "pids.current": "5\n",
        "memory.events": "low 0\noom 3\noom_kill 2\n",
        "pids.events": "max 6\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert UnifiedGroup(folder=tmp_path).usage() == Usage(
        memory=100,
        peak_memory=200,
        cpu_seconds=1.5,
        processes=5,
        killed_for_memory=2,
        refused_forks=6,
        throttled=4,
    )


def test_an_older_kernel_says_less(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 1000000\n")
    assert UnifiedGroup(folder=tmp_path).usage() == Usage(cpu_seconds=1.0)


def test_a_kernel_without_the_kill_file_is_kept_from_forking(tmp_path: Path) -> None:
    group = UnifiedGroup(folder=tmp_path)
    assert group.stoppers == ((str(tmp_path / "pids.max"), "0"),)
    (tmp_path / "cgroup.kill").write_text("")
    assert group.stoppers == ((str(tmp_path / "cgroup.kill"), "1"),)


def test_the_groups_of_version_1_are_found_controller_by_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ("memory.limit_in_bytes", "pids.max", "cpu.cfs_period_us", "cpu.cfs_quota_us")
    Kernel(tmp_path, dict.fromkeys(("cgroup.procs", *limits), ""), monkeypatch)
    mounts = "".join(
        f"3{number} 31 0:2{number} {root} {tmp_path}/{name} rw - cgroup cgroup rw,{name}\n"
        for number, (name, root) in enumerate([("cpu,cpuacct", "/"), ("memory", "/docker/abc"), ("pids", "/")])
    )
    own = "4:memory:/docker/abc/inner\n3:pids:/\n1:cpu,cpuacct:/sub\n0::/\n"
    (tmp_path / "cpu,cpuacct" / "sub").mkdir(parents=True)
    (tmp_path / "memory" / "inner").mkdir(parents=True)
    (tmp_path / "pids").mkdir()
    group, sentence = find_groups("node", own=own, mounts=mounts)
    assert "version 1" in sentence
    assert isinstance(group, SeparateGroups)
    assert group.folders == {
        "memory": tmp_path / "memory/inner/contextbase-node",
        "pids": tmp_path / "pids/contextbase-node",
        "cpu": tmp_path / "cpu,cpuacct/sub/contextbase-node",
        "cpuacct": tmp_path / "cpu,cpuacct/sub/contextbase-node",
    }
    assert len(group.members) == 3
    assert group_at(group.place) == group


def test_a_machine_without_them_says_so() -> None:
    group, sentence = find_groups("node", own="0::/\n", mounts="24 1 0:22 / /sys rw - sysfs sysfs rw\n")
    assert group is None
    assert "no control groups" in sentence
