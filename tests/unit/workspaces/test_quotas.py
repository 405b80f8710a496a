"""How projects are taken and given back, with a kernel that counts folders and nothing else."""

import errno
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from contextbase.errors import TooBusy
from contextbase.workspaces import quotas
from contextbase.workspaces.model import Quota
from contextbase.workspaces.quotas import ProjectQuotas, open_quotas, refusal_of_quotas
from contextbase.workspaces.syscalls import ProjectUse


@dataclass
class Kernel:
    projects: dict[int, int] = field(default_factory=dict)  # by inode
    limits: dict[int, tuple[int, int]] = field(default_factory=dict)
    intruder: bool = False  # somebody takes each number in the moment we do

    def set_project(self, folder: int, project: int) -> None:
        self.projects[os.fstat(folder).st_ino] = project

    def project_of(self, folder: int) -> int:
        return self.projects.get(os.fstat(folder).st_ino, 0)

    def project_use(self, _: int, project: int) -> ProjectUse:
        files = Counter(self.projects.values())[project]
        files += self.intruder and files > 0
        most_bytes, most_files = self.limits.get(project, (0, 0))
        return ProjectUse(bytes=files * 4096, files=files, most_bytes=most_bytes, most_files=most_files)

    def limit_project(self, _: int, project: int, *, most_bytes: int, most_files: int) -> None:
        self.limits[project] = (most_bytes, most_files)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    for name in ("set_project", "project_of", "project_use", "limit_project"):
        monkeypatch.setattr(quotas, name, getattr(kernel, name))
    return kernel


def make(folder: Path) -> str:
    folder.mkdir()
    return str(folder)


def project_at(kernel: Kernel, folder: str) -> int:
    return kernel.projects[Path(folder).stat().st_ino]


def test_folders_share_a_project_that_nobody_else_has(kernel: Kernel, tmp_path: Path) -> None:
    first, second = ProjectQuotas(Quota()), ProjectQuotas(Quota())
    first._next = second._next = 7  # as two processes may that know nothing of each other
    upper, work, other = (make(tmp_path / name) for name in ("upper", "work", "other"))
    first.gather(upper, work)
    second.gather(other)
    assert project_at(kernel, upper) == project_at(kernel, work) != project_at(kernel, other)


def test_the_quota_is_for_what_comes_beyond_what_was_given(kernel: Kernel, tmp_path: Path) -> None:
    one = ProjectQuotas(Quota(bytes=1000, files=10))
    folders = [make(tmp_path / str(number)) for number in range(5)]
    one.gather(*folders)
    one.limit(folders[0])
    most_bytes, most_files = kernel.limits[project_at(kernel, folders[0])]
    assert most_bytes > 5 * 4096 + 1000
    assert most_files > 5 + 10


def test_what_must_succeed_has_a_little_room_and_then_the_limits_are_as_before(kernel: Kernel, tmp_path: Path) -> None:
    one, folder = ProjectQuotas(Quota()), make(tmp_path / "folder")
    one.gather(folder)
    with one.with_room(folder):
        assert kernel.limits == {}  # it has none to go beyond
    one.limit(folder)
    [before] = kernel.limits.values()
    with one.with_room(folder):
        [during] = kernel.limits.values()
    assert during > before
    assert list(kernel.limits.values()) == [before]


def test_limits_go_before_the_folder_does(kernel: Kernel, tmp_path: Path) -> None:
    one, folder = ProjectQuotas(Quota()), make(tmp_path / "folder")
    one.gather(folder)
    one.limit(folder)
    one.lift(folder)
    assert kernel.limits == {project_at(kernel, folder): (0, 0)}


def test_a_project_of_the_administrators_is_left_alone(kernel: Kernel, tmp_path: Path) -> None:
    one, folder, new = ProjectQuotas(Quota()), make(tmp_path / "folder"), make(tmp_path / "new")
    kernel.projects[Path(folder).stat().st_ino] = 42
    one.limit(folder)
    one.lift(folder)
    one.join(new, other=folder)
    assert kernel.limits == {}
    assert list(kernel.projects.values()) == [42]


def test_a_number_with_limits_or_files_is_anothers(kernel: Kernel, tmp_path: Path) -> None:
    one, folder = ProjectQuotas(Quota()), make(tmp_path / "folder")
    one._next = 0
    kernel.limits[quotas._FIRST + 1] = (1, 1)
    kernel.projects[-1] = quotas._FIRST + 2
    one.gather(folder)
    assert project_at(kernel, folder) == quotas._FIRST + 3


def test_when_every_number_is_taken_it_is_said_and_none_is_kept(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "_MOST", 16)
    kernel.intruder = True
    folder = make(tmp_path / "folder")
    with pytest.raises(TooBusy):
        ProjectQuotas(Quota()).gather(folder)
    assert project_at(kernel, folder) == 0


def test_where_the_file_system_has_none_there_are_none_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ESRCH, "no project quotas")

    monkeypatch.setattr(quotas, "project_use", refuse)
    assert open_quotas(tmp_path, Quota()) is None
    assert "no project quotas" in (refusal_of_quotas(tmp_path) or "")
    assert list(tmp_path.iterdir()) == []


def test_quotas_that_hold_nothing_are_found_out_by_going_beyond_them(kernel: Kernel, tmp_path: Path) -> None:
    assert "too large" in (refusal_of_quotas(tmp_path) or "")
    assert list(tmp_path.iterdir()) == []
    assert set(kernel.limits.values()) == {(0, 0)}
