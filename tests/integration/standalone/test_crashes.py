"""kill -9 in the middle of a sync: every file is wholly old or wholly new, and the next sync finishes the work."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.sandboxes import TEXT, Site, lines_of
from tests.support.sync_crash_worker import AFTER, BEFORE

from contextbase.standalone.base_folder import BaseFolder
from contextbase.standalone.metadata import Journal

_REPOSITORY = Path(__file__).parents[3]


def test_killed_before_each_step_of_a_sync_nothing_is_torn_lost_or_done_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.sync_crash_worker", str(tmp_path)]
    done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, timeout=280, check=True)
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    assert kills[-1]["killed_before"] == ""
    assert {kill["killed_before"] for kill in kills[:-1]} >= {"rename", "replace", "fsync", "unlink", "symlink"}
    for kill in kills:
        for path, content in kill["found"].items():
            assert content in (BEFORE.get(path), AFTER.get(path)), (kill["step"], path)
        gone = (set(BEFORE) & set(AFTER)) - set(kill["found"])
        assert not gone
        assert kill["after"] == AFTER, kill["step"]
        assert set(kill["kept"]) == {"mine\n"}, kill["step"]
        assert (kill["failed"], kill["drafts"], kill["unsynced"]) == ([], [], [])


class Killed(BaseException):
    """Nothing after it runs, as with kill -9."""


def test_processes_that_sync_at_once_lose_nothing_though_one_of_them_is_killed(site: Site) -> None:
    names = [f"worker-{number}" for number in range(4)]
    site.put("a.txt", "".join(f"{name}\n" * 4 + f"section of {name}\n" for name in names))
    said = {name: site.folder / f"{name}.said" for name in names}
    running = {}
    for name in names:
        command = [sys.executable, "-m", "tests.support.sandbox_loop_worker", str(site.folder), name, "12"]
        with said[name].open("wb") as output:
            running[name] = subprocess.Popen(command, cwd=_REPOSITORY, stdout=output)
    victim = running.pop(names[0])
    try:
        for _ in range(5000):
            if len(said[names[0]].read_text().splitlines()) >= 5:
                break
            time.sleep(0.01)
        victim.kill()
        assert [process.wait(timeout=240) for process in running.values()] == [0, 0, 0]
    finally:
        for process in (victim, *running.values()):
            process.kill()
            process.wait()
    assert site.worker(names[0]).sync_back().is_complete
    lines = set().union(*(path.read_text().splitlines() for path in said.values()))
    assert len(lines) >= 5 + 3 * 12
    written = [line for line in (site.base / "a.txt").read_text().splitlines() if " wrote " in line]
    assert lines <= set(written)
    assert len(set(written)) == len(written)


def test_a_merge_that_was_given_up_before_the_crash_is_not_taken_for_done(site: Site) -> None:
    """The first draft came too late and was discarded; the kill comes before there is a second one."""
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text(lines_of(TEXT, line_2="MINE"))
    base = worker._opened.base
    draft, calls = base.draft, iter([1])

    def killed_at_the_second(*arguments: object, **named: object) -> str:
        if next(calls, None) is None:
            raise Killed
        made = draft(*arguments, **named)
        site.put("a.txt", lines_of(TEXT, line_28="THEIRS"))
        return made

    base.draft = killed_at_the_second
    with pytest.raises(Killed):
        worker.sync_back()
    worker.close()
    assert [file.path for file in site.worker("one").sync_back().merged] == ["a.txt"]
    assert (site.base / "a.txt").read_text() == lines_of(TEXT, line_2="MINE", line_28="THEIRS")


def test_a_draft_that_somebody_cleared_away_after_the_crash_is_not_taken_for_moved(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(BaseFolder, "move_draft", killed)
        patched.setattr(Journal, "cancel", killed)
        with pytest.raises(Killed):
            worker.sync_back()
    worker.close()
    (draft,) = (site.base / ".contextbase/incoming").iterdir()
    draft.unlink()
    assert [file.path for file in site.worker("one").sync_back().success] == ["a.txt"]
    assert (site.base / "a.txt").read_text() == "mine\n"


def test_a_copy_that_was_cut_short_leaves_nothing_that_looks_like_work(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("a.txt")
    site.put("b.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")
    worker.sync_back()

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("contextbase.standalone.copies.sync_filesystem", killed)
        patched.setattr("contextbase.standalone.copies.forget_unfinished", killed)
        with pytest.raises(Killed):
            worker.copy("**")
    worker.close()
    assert (worker._places._root / "one/files/b.txt").exists()
    site.put("b.txt", "others go on\n")
    again = site.worker("one")
    assert not again.path_of("b.txt").exists()
    assert again.sync_back().files == ()
    assert (site.base / "a.txt").read_text() == "mine\n"
    assert (site.base / "b.txt").read_text() == "others go on\n"
    again.copy("**")
    assert again.path_of("b.txt").read_text() == "others go on\n"
