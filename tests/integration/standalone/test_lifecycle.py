"""A sandbox from setup to cleanup: what is copied, who may have it, what is told, and what is left."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.sandboxes import TEXT, Site, tree_of

from contextbase.errors import Conflict, Damaged, InvalidInput, NotFound
from contextbase.standalone import SandboxEvent, SandboxFolders, StandaloneState, WorkerSandbox
from contextbase.standalone.leftovers import clean, reopened

_REPOSITORY = Path(__file__).parents[3]


def states(site: Site) -> dict[str, StandaloneState]:
    return {info.worker_id: info.state for info in SandboxFolders(site.root).list()}


def test_the_whole_way_is_told(site: Site) -> None:
    site.put("a.txt")
    site.put("b.txt")
    events: list[SandboxEvent] = []
    worker = site.worker("one", "*.txt", on_event=events.append)
    site.put("b.txt", "theirs\n")
    worker.path_of("a.txt").write_text("mine\n")
    worker.path_of("b.txt").write_text("mine\n")
    worker.sync_back()
    worker.cleanup()
    assert [(event.kind.value, event.path, event.outcome and event.outcome.value) for event in events] == [
        ("setup", "", None),
        ("copy", "a.txt", None),
        ("copy", "b.txt", None),
        ("sync", "a.txt", "success"),
        ("conflict", "b.txt", "conflict"),
        ("cleanup", "", None),
    ]
    assert {(event.worker_id, event.task_id) for event in events} == {("one", "task")}


def test_files_folders_and_patterns_are_copied(site: Site) -> None:
    for path in ("top.md", "src/a.py", "src/deep/b.py", "src/deep/c.md", "docs/d.md", ".git/config", "src/x.pyc"):
        site.put(path)
    (site.base / "src/empty").mkdir()
    assert site.worker("file", "src/a.py")._opened.metadata.files.keys() == {"src/a.py"}
    assert set(tree_of(site.worker("folder", "src").path)) == {
        "src", "src/a.py", "src/deep", "src/deep/b.py", "src/deep/c.md", "src/empty",
    }  # fmt: skip
    copied = {
        "*.md": {"top.md"},
        "**/*.md": {"top.md", "src/deep/c.md", "docs/d.md"},
        "src/*.py": {"src/a.py"},
        "src/**": {"src/a.py", "src/deep/b.py", "src/deep/c.md"},
        "s?c/deep/*": {"src/deep/b.py", "src/deep/c.md"},
        ".git/config": {".git/config"},
    }
    for number, (pattern, paths) in enumerate(copied.items()):
        assert set(site.worker(f"pattern-{number}").copy(pattern).copied) == paths


def test_what_is_not_there_is_said_and_nothing_is_copied(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one")
    with pytest.raises(NotFound, match=r"no missing\.txt"):
        worker.copy("a.txt", "missing.txt")
    with pytest.raises(NotFound, match="matches"):
        worker.copy("*.md")
    assert tree_of(worker.path) == {}


def test_a_copy_brings_an_unchanged_file_up_to_date(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    site.put("a.txt", "newer\n")
    worker.copy("a.txt")
    assert worker.path_of("a.txt").read_text() == "newer\n"
    assert worker.sync_back().files == ()


def test_a_copy_never_overwrites_the_workers_changes(site: Site) -> None:
    site.put("a.txt")
    site.put("b.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")
    worker.path_of("b.txt").write_text("mine, and new\n")
    for name in ("a.txt", "b.txt", "**"):
        with pytest.raises(Conflict, match="not synced back"):
            worker.copy(name)
    assert worker.path_of("a.txt").read_text() == "mine\n"
    assert worker.path_of("b.txt").read_text() == "mine, and new\n"


def test_a_file_that_was_deleted_can_be_copied_again(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").unlink()
    worker.copy("a.txt")
    assert worker.path_of("a.txt").read_text() == TEXT


def test_a_sandbox_is_gone_on_with_by_the_same_worker_and_task(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")
    worker.close()
    again = site.worker("one")
    assert again.path_of("a.txt").read_text() == "mine\n"
    assert [file.path for file in again.sync_back().success] == ["a.txt"]


def test_another_task_does_not_get_a_sandbox_with_work_in_it(site: Site) -> None:
    site.worker("one").close()
    with pytest.raises(Conflict, match="still has task 'task'"):
        site.worker("one", task="other")
    site.worker("one").cleanup()
    site.worker("one", task="other")


def test_one_process_has_a_sandbox_at_a_time(site: Site) -> None:
    worker = site.worker("one")
    with pytest.raises(Conflict, match="in use"):
        site.worker("one")
    with pytest.raises(Conflict, match="in use"):
        clean(site.root, "one", discard=True)
    assert states(site) == {"one": StandaloneState.IN_USE}
    worker.close()
    assert states(site) == {"one": StandaloneState.IDLE}
    site.worker("one")


def test_the_sandbox_of_a_killed_worker_is_free_again(site: Site) -> None:
    site.put("a.txt")
    code = f"""
import sys
from contextbase.standalone import WorkerSandbox
from pathlib import Path
worker = WorkerSandbox("one", "task", {str(site.base)!r}, root=Path({str(site.root)!r}))
worker.setup()
worker.copy("a.txt")
worker.path_of("a.txt").write_text("its work\\n")
print("ready", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=_REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert states(site) == {"one": StandaloneState.IN_USE}
    finally:
        process.kill()
        process.communicate()
    assert states(site) == {"one": StandaloneState.IDLE}
    assert [file.path for file in site.worker("one").sync_back().success] == ["a.txt"]
    assert (site.base / "a.txt").read_text() == "its work\n"


def test_cleanup_refuses_to_lose_a_new_empty_folder(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "*.txt")
    (worker.path / "logs").mkdir()
    with pytest.raises(Conflict, match="logs"):
        worker.cleanup()
    worker.sync_back()
    worker.cleanup()
    assert (site.base / "logs").is_dir()


def test_cleanup_refuses_to_lose_work_and_names_it(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")
    with pytest.raises(Conflict, match=r"a\.txt") as refused:
        worker.cleanup()
    assert refused.value.details["paths"] == ["a.txt"]
    with pytest.raises(Conflict):
        worker.cleanup(lazy=True)
    worker.cleanup(discard=True)
    assert states(site) == {}
    assert (site.base / "a.txt").read_text() == TEXT


def test_what_conflicted_is_kept_elsewhere_and_so_the_sandbox_may_go(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    site.put("a.txt", "theirs\n")
    worker.path_of("a.txt").write_text("mine\n")
    kept_at = worker.sync_back().conflicts[0].kept_at
    worker.cleanup()
    assert (site.base / kept_at).read_text() == "mine\n"
    assert list(site.root.glob("*")) == [site.root / ".removed"]


def test_a_kept_version_that_somebody_removed_keeps_the_sandbox(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    site.put("a.txt", "theirs\n")
    worker.path_of("a.txt").write_text("mine\n")
    (site.base / worker.sync_back().conflicts[0].kept_at).unlink()
    with pytest.raises(Conflict, match=r"a\.txt"):
        worker.cleanup()
    kept_at = worker.sync_back().conflicts[0].kept_at
    assert (site.base / kept_at).read_text() == "mine\n"
    worker.cleanup()


def test_a_lazy_cleanup_leaves_the_folder_to_be_used_again(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.cleanup(lazy=True)
    assert states(site) == {"one": StandaloneState.FINISHED}
    again = site.worker("one", task="next")
    assert tree_of(again.path) == {}
    again.cleanup(lazy=True)
    clean(site.root, "one")
    assert states(site) == {}


def test_leftovers_are_listed_and_cleaned(site: Site) -> None:
    site.put("a.txt")
    site.worker("idle", "a.txt").close()
    unsynced = site.worker("unsynced", "a.txt")
    unsynced.path_of("a.txt").write_text("mine\n")
    unsynced.close()
    site.worker("broken").close()
    (site.root / "broken/.sandbox-metadata.json").write_text("")
    (site.root / ".removed/half").mkdir(parents=True)
    listed = SandboxFolders(site.root).list()
    assert [(info.worker_id, info.state, info.task_id, info.files) for info in listed] == [
        ("broken", StandaloneState.BROKEN, "", 0),
        ("idle", StandaloneState.IDLE, "task", 1),
        ("unsynced", StandaloneState.IDLE, "task", 1),
    ]
    clean(site.root, "idle")
    with pytest.raises(Conflict, match=r"a\.txt"):
        clean(site.root, "unsynced")
    with pytest.raises(Damaged):
        clean(site.root, "broken")
    for name in ("unsynced", "broken"):
        clean(site.root, name, discard=True)
    assert SandboxFolders(site.root).remove_leftovers() == 1
    assert SandboxFolders(site.root).list() == []
    with pytest.raises(NotFound):
        clean(site.root, "idle")
    assert SandboxFolders(site.root / "nowhere").list() == []


def test_a_sandbox_whose_base_folder_is_gone_can_be_discarded(site: Site) -> None:
    site.worker("one").close()
    site.base.rename(site.folder / "moved")
    with pytest.raises(InvalidInput, match="cannot be opened"):
        clean(site.root, "one")
    clean(site.root, "one", discard=True)
    assert states(site) == {}


def test_files_without_metadata_are_never_thrown_away(site: Site) -> None:
    worker = site.worker("one")
    worker.path_of("work.txt").write_text("work\n")
    worker.close()
    (site.root / "one/.sandbox-metadata.json").unlink()
    with pytest.raises(Damaged, match="Save what you need"):
        site.worker("one")
    with pytest.raises(Damaged):
        reopened(site.root, "one")
    assert (site.root / "one/files/work.txt").read_text() == "work\n"


def test_stats_add_up_over_all_syncs(site: Site) -> None:
    site.put("a.txt", "12345\n")
    worker = site.worker("one", "a.txt")
    worker.path_of("new.txt").write_text("1\n")
    worker.sync_back()
    worker.path_of("a.txt").write_text("mine\n")
    site.put("a.txt", "theirs\n")
    worker.sync_back()
    worker.close()
    stats = site.worker("one").stats()
    assert (stats.copied, stats.copied_bytes) == (2, 8)
    assert (stats.syncs, stats.succeeded, stats.merged, stats.conflicts, stats.failed) == (2, 1, 0, 1, 0)


def test_a_sandbox_that_is_not_set_up_says_so(site: Site) -> None:
    worker = WorkerSandbox("one", "task", site.base, root=site.root)
    with pytest.raises(Conflict, match="not set up"):
        worker.sync_back()
    with worker:
        assert worker.path == site.root / "one/files"
    with pytest.raises(Conflict, match="not set up"):
        worker.copy("a.txt")
    with pytest.raises(InvalidInput, match="task"):
        WorkerSandbox("one", "", site.base)


def test_a_sandbox_can_be_used_inside_a_running_event_loop(site: Site) -> None:
    """As in a notebook: the leases have a loop of their own."""
    site.put("a.txt")

    async def work() -> None:
        with WorkerSandbox("one", "task", site.base, root=site.root) as worker:
            worker.copy("a.txt")
            worker.path_of("a.txt").write_text("mine\n")
            assert worker.sync_back().is_complete

    asyncio.run(work())
    assert (site.base / "a.txt").read_text() == "mine\n"
