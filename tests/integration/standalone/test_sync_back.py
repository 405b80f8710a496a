"""What a worker did comes back, and nothing that others did goes: each way to lose work has a test."""

import json
import os
import threading

import pytest
from tests.support.require import require_root
from tests.support.sandboxes import TEXT, Site, lines_of, tree_of

from contextbase.leases import FolderLeases, SyncLeases
from contextbase.standalone import FileResult, SyncOutcome, SyncResult


def outcomes(result: SyncResult) -> dict[str, str]:
    return {file.path: file.outcome.value for file in result.files}


def only(files: tuple[FileResult, ...]) -> FileResult:
    assert len(files) == 1
    return files[0]


def _leases(site: Site) -> SyncLeases:
    """Those of the base folder, as anybody has them."""
    return SyncLeases(lambda: FolderLeases(site.base / ".contextbase/leases"))


def test_a_stale_copy_does_not_revert_what_others_did(site: Site) -> None:
    site.put("shared.txt")
    site.put("mine.txt")
    worker = site.worker("one", "*.txt")
    site.put("shared.txt", "somebody else was here\n")
    worker.path_of("mine.txt").write_text("changed\n")
    assert outcomes(worker.sync_back()) == {"mine.txt": "success"}
    assert (site.base / "shared.txt").read_text() == "somebody else was here\n"


def test_two_workers_on_different_parts_of_a_file_both_get_in(site: Site) -> None:
    site.put("a.txt")
    one, two = site.worker("one", "a.txt"), site.worker("two", "a.txt")
    one.path_of("a.txt").write_text(lines_of(TEXT, line_2="ONE"))
    two.path_of("a.txt").write_text(lines_of(TEXT, line_28="TWO"))
    assert outcomes(one.sync_back()) == {"a.txt": "success"}
    assert outcomes(two.sync_back()) == {"a.txt": "merged"}
    assert (site.base / "a.txt").read_text() == lines_of(TEXT, line_2="ONE", line_28="TWO")


def test_work_goes_on_after_a_merge_without_undoing_it(site: Site) -> None:
    site.put("a.txt")
    one, two = site.worker("one", "a.txt"), site.worker("two", "a.txt")
    one.path_of("a.txt").write_text(lines_of(TEXT, line_2="ONE"))
    one.sync_back()
    two.path_of("a.txt").write_text(lines_of(TEXT, line_28="TWO"))
    two.sync_back()
    two.path_of("a.txt").write_text(lines_of(TEXT, line_15="MORE", line_28="TWO"))  # it never saw what one did
    assert outcomes(two.sync_back()) == {"a.txt": "merged"}
    assert (site.base / "a.txt").read_text() == lines_of(TEXT, line_2="ONE", line_15="MORE", line_28="TWO")


def test_a_conflict_leaves_the_base_as_it_was_and_keeps_the_workers_version(site: Site) -> None:
    site.put("src/a.txt")
    worker = site.worker("one", "src")
    theirs, mine = lines_of(TEXT, line_2="THEIRS"), lines_of(TEXT, line_2="MINE")
    site.put("src/a.txt", theirs)
    worker.path_of("src/a.txt").write_text(mine)
    conflict = only(worker.sync_back().conflicts)
    assert conflict.reason == "Both changed it, in the same places."
    assert (site.base / "src/a.txt").read_text() == theirs
    assert conflict.kept_at.startswith(".contextbase/conflicts/one/")
    assert (site.base / conflict.kept_at).read_text() == mine
    assert worker.path_of("src/a.txt").read_text() == mine


def test_a_conflict_that_stays_is_kept_once_and_a_new_version_beside_it(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    site.put("a.txt", lines_of(TEXT, line_2="THEIRS"))
    worker.path_of("a.txt").write_text(lines_of(TEXT, line_2="MINE"))
    first, again = only(worker.sync_back().conflicts), only(worker.sync_back().conflicts)
    assert again.kept_at == first.kept_at
    worker.path_of("a.txt").write_text(lines_of(TEXT, line_2="MINE, NEWER"))
    newer = only(worker.sync_back().conflicts)
    assert "MINE\n" in (site.base / first.kept_at).read_text()
    assert "MINE, NEWER\n" in (site.base / newer.kept_at).read_text()


def test_after_a_conflict_the_worker_can_start_from_the_new_version(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    theirs = lines_of(TEXT, line_2="THEIRS")
    site.put("a.txt", theirs)
    worker.path_of("a.txt").write_text(lines_of(TEXT, line_2="MINE"))
    worker.sync_back()
    worker.copy("a.txt")
    assert worker.path_of("a.txt").read_text() == theirs
    worker.path_of("a.txt").write_text(lines_of(theirs, line_2="BOTH"))
    assert outcomes(worker.sync_back()) == {"a.txt": "success"}
    assert (site.base / "a.txt").read_text() == lines_of(theirs, line_2="BOTH")


def test_a_conflict_that_others_made_go_away_is_over(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    site.put("a.txt", lines_of(TEXT, line_2="THEIRS"))
    worker.path_of("a.txt").write_text(lines_of(TEXT, line_2="MINE"))
    assert outcomes(worker.sync_back()) == {"a.txt": "conflict"}
    site.put("a.txt", lines_of(TEXT, line_28="THEIRS"))
    assert outcomes(worker.sync_back()) == {"a.txt": "merged"}
    assert worker._opened.metadata.kept == {}


def test_deletes_come_back(site: Site) -> None:
    site.put("src/a.txt")
    site.put("src/deep/b.txt")
    site.put("kept.txt")
    worker = site.worker("one", "src")
    worker.path_of("src/deep/b.txt").unlink()
    worker.path_of("src/deep").rmdir()
    worker.path_of("src/a.txt").unlink()
    assert outcomes(worker.sync_back()) == {"src/a.txt": "success", "src/deep/b.txt": "success"}
    assert set(tree_of(site.base)) == {"kept.txt", "src"}
    assert worker.sync_back().files == ()


def test_what_was_not_copied_is_not_deleted(site: Site) -> None:
    site.put("src/a.txt")
    site.put("src/other.txt")
    worker = site.worker("one", "src/a.txt")
    worker.path_of("src/a.txt").unlink()
    worker.path_of("src").rmdir()
    worker.sync_back()
    assert set(tree_of(site.base)) == {"src", "src/other.txt"}


def test_a_delete_of_what_somebody_changed_is_a_conflict(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    site.put("a.txt", "changed\n")
    worker.path_of("a.txt").unlink()
    conflict = only(worker.sync_back().conflicts)
    assert (conflict.reason, conflict.kept_at) == ("One deleted it, the other changed it.", "")
    assert (site.base / "a.txt").read_text() == "changed\n"


def test_a_change_to_what_somebody_deleted_is_a_conflict_and_kept(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    (site.base / "a.txt").unlink()
    worker.path_of("a.txt").write_text("mine\n")
    conflict = only(worker.sync_back().conflicts)
    assert not (site.base / "a.txt").exists()
    assert (site.base / conflict.kept_at).read_text() == "mine\n"


def test_new_files_come_back_with_their_folders(site: Site) -> None:
    worker = site.worker("one")
    worker.path_of("new/deep").mkdir(parents=True)
    worker.path_of("new/deep/a.txt").write_text("new\n")
    worker.path_of("empty").mkdir()
    assert outcomes(worker.sync_back()) == {"new/deep/a.txt": "success", "empty": "success"}
    assert tree_of(site.base)["new/deep/a.txt"][:2] == ("file", b"new\n")
    assert "empty" in tree_of(site.base)
    assert worker.sync_back().files == ()


def test_of_two_creators_of_one_file_none_loses(site: Site) -> None:
    one, two = site.worker("one"), site.worker("two")
    one.path_of("new.txt").write_text("one's idea\n")
    two.path_of("new.txt").write_text("two's other idea\n")
    assert outcomes(one.sync_back()) == {"new.txt": "success"}
    conflict = only(two.sync_back().conflicts)
    assert (site.base / "new.txt").read_text() == "one's idea\n"
    assert (site.base / conflict.kept_at).read_text() == "two's other idea\n"


def test_two_creators_of_the_same_content_agree(site: Site) -> None:
    one, two = site.worker("one"), site.worker("two")
    for worker in (one, two):
        worker.path_of("new.txt").write_text("the same\n")
        assert outcomes(worker.sync_back()) == {"new.txt": "success"}


def test_a_binary_file_that_both_changed_is_not_overwritten(site: Site) -> None:
    site.put("image", b"\x00base")
    worker = site.worker("one", "image")
    site.put("image", b"\x00theirs")
    worker.path_of("image").write_bytes(b"\x00mine")
    conflict = only(worker.sync_back().conflicts)
    assert (site.base / "image").read_bytes() == b"\x00theirs"
    assert (site.base / conflict.kept_at).read_bytes() == b"\x00mine"


def test_a_crdt_file_never_conflicts_and_the_value_that_lost_is_kept(site: Site) -> None:
    site.put("state.crdt.json", '{"a": 1, "n": {"$counter": 1}}')
    worker = site.worker("one", "state.crdt.json")
    site.put("state.crdt.json", '{"a": 2, "n": {"$counter": 3}}')
    worker.path_of("state.crdt.json").write_text('{"a": 3, "n": {"$counter": 11}}')
    merged = only(worker.sync_back().merged)
    assert json.loads((site.base / "state.crdt.json").read_text()) == {"a": 3, "n": {"$counter": 13}}
    assert json.loads((site.base / merged.kept_at).read_text()) == {"a": 2, "n": {"$counter": 3}}


def test_modes_and_links_survive_both_ways(site: Site) -> None:
    site.put("run.sh", "#!/bin/sh\n", mode=0o755)
    site.put("secret", "s\n", mode=0o600)
    (site.base / "link").symlink_to("run.sh")
    worker = site.worker("one", "run.sh", "secret", "link")
    assert {path: node[2] for path, node in tree_of(worker.path).items()} == {
        "run.sh": 0o755,
        "secret": 0o600,
        "link": 0,
    }
    worker.path_of("run.sh").write_text("#!/bin/sh\ntrue\n")
    worker.path_of("secret").chmod(0o640)
    worker.path_of("link").unlink()
    worker.path_of("link").symlink_to("secret")
    worker.path_of("new").symlink_to("nowhere/at/all")
    assert worker.sync_back().is_complete
    assert tree_of(site.base) == {
        "run.sh": ("file", b"#!/bin/sh\ntrue\n", 0o755),
        "secret": ("file", b"s\n", 0o640),
        "link": ("link", b"secret", 0),
        "new": ("link", b"nowhere/at/all", 0),
    }


def test_what_root_brings_back_belongs_to_who_owned_it(site: Site) -> None:
    require_root()
    site.put("a.txt")
    for path in (site.base, site.base / "a.txt"):
        os.chown(path, 12345, 12346)
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")
    worker.path_of("new").mkdir()
    worker.path_of("new/file.txt").write_text("new\n")
    assert worker.sync_back().is_complete
    owned = [(site.base / name).stat() for name in ("a.txt", "new", "new/file.txt")]
    assert {(status.st_uid, status.st_gid) for status in owned} == {(12345, 12346)}


def test_a_link_that_both_retargeted_is_a_conflict_and_kept_as_a_link(site: Site) -> None:
    (site.base / "link").symlink_to("base")
    worker = site.worker("one", "link")
    (site.base / "link").unlink()
    (site.base / "link").symlink_to("theirs")
    worker.path_of("link").unlink()
    worker.path_of("link").symlink_to("mine")
    conflict = only(worker.sync_back().conflicts)
    assert os.readlink(site.base / "link") == "theirs"  # noqa: PTH115 - a Path would respell it
    assert os.readlink(site.base / conflict.kept_at) == "mine"  # noqa: PTH115


def test_a_mode_changed_by_the_others_stays_when_only_the_content_was_the_workers(site: Site) -> None:
    site.put("a.sh", mode=0o644)
    worker = site.worker("one", "a.sh")
    (site.base / "a.sh").chmod(0o755)
    worker.path_of("a.sh").write_text("mine\n")
    worker.sync_back()
    assert tree_of(site.base)["a.sh"] == ("file", b"mine\n", 0o755)


def test_a_file_may_become_a_folder_and_a_folder_a_file(site: Site) -> None:
    site.put("file", "f\n")
    site.put("folder/inside", "i\n")
    worker = site.worker("one", "file", "folder")
    worker.path_of("file").unlink()
    worker.path_of("file").mkdir()
    worker.path_of("file/inside").write_text("new\n")
    worker.path_of("folder/inside").unlink()
    worker.path_of("folder").rmdir()
    worker.path_of("folder").write_text("now a file\n")
    assert worker.sync_back().is_complete
    assert {path: node[:2] for path, node in tree_of(site.base).items()} == {
        "file": ("folder", b""),
        "file/inside": ("file", b"new\n"),
        "folder": ("file", b"now a file\n"),
    }


def test_a_folder_with_others_files_is_not_replaced_by_a_file(site: Site) -> None:
    site.put("folder/inside")
    site.put("folder/others")
    worker = site.worker("one", "folder/inside")
    worker.path_of("folder/inside").unlink()
    worker.path_of("folder").rmdir()
    worker.path_of("folder").write_text("now a file\n")
    conflict = only(worker.sync_back().conflicts)
    assert (site.base / "folder/others").read_text() == TEXT
    assert (site.base / conflict.kept_at).read_text() == "now a file\n"


def test_what_nobody_wants_to_share_stays_unless_it_was_copied(site: Site) -> None:
    site.put(".contextbaseignore", "*.log\n")
    site.put("given.log", "1\n")
    worker = site.worker("one", "given.log")
    worker.path_of("given.log").write_text("2\n")
    worker.path_of("other.log").write_text("noise\n")
    worker.path_of("__pycache__").mkdir()
    worker.path_of("__pycache__/a.pyc").write_text("noise\n")
    assert outcomes(worker.sync_back()) == {"given.log": "success"}
    assert {path for path in tree_of(site.base) if path != ".contextbaseignore"} == {"given.log"}
    assert (site.base / "given.log").read_text() == "2\n"


def test_gitignore_files_of_the_base_folder_count_in_every_folder(site: Site) -> None:
    site.put(".gitignore", "build/\n")
    site.put("src/.gitignore", "*.log\n")
    site.put("src/a.py")
    site.put("src/a.log")
    site.put("build/app")
    site.put("build/cache/__pycache__/x")
    worker = site.worker("one", "**")
    assert set(tree_of(worker.path)) == {".gitignore", "src", "src/.gitignore", "src/a.py"}
    worker.copy("build")  # it is asked for by name
    assert {path for path in tree_of(worker.path) if path.startswith("build")} == {"build", "build/app", "build/cache"}
    worker.path_of("src/new.log").write_text("noise\n")
    worker.path_of("build/new").write_text("noise\n")
    worker.path_of("build/app").write_text("mine\n")
    assert outcomes(worker.sync_back()) == {"build/app": "success"}


def test_a_file_under_a_lease_waits_for_it(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")
    results: list[SyncResult] = []
    syncing = threading.Thread(target=lambda: results.append(worker.sync_back()))
    with _leases(site) as leases:
        with leases.holding("**", owner="somebody"):
            syncing.start()
            syncing.join(timeout=0.2)
            assert syncing.is_alive()
            assert (site.base / "a.txt").read_text() == TEXT
        syncing.join(timeout=60)
    assert outcomes(results[0]) == {"a.txt": "success"}


def test_a_lease_that_is_never_released_fails_that_file_and_no_other(site: Site) -> None:
    site.put("a.txt")
    site.put("b.txt")
    worker = site.worker("one", "*.txt", lease_timeout=0.05)
    for name in ("a.txt", "b.txt"):
        worker.path_of(name).write_text("mine\n")
    with _leases(site) as leases, leases.holding("a.txt", owner="somebody"):
        result = worker.sync_back()
    assert outcomes(result) == {"a.txt": "failed", "b.txt": "success"}
    assert "somebody has a lease" in only(result.failed).reason
    assert outcomes(worker.sync_back()) == {"a.txt": "success"}


def test_who_lost_its_lease_on_the_way_does_not_write(site: Site) -> None:
    """As when a worker was stopped for longer than its lease lasts, between the merge and the write."""
    site.put("a.txt")
    with _leases(site) as leases:
        late = site.worker("late", "a.txt")
        late.path_of("a.txt").write_text("late\n")
        base = late._opened.base
        draft = base.draft

        def draft_slowly(*arguments: object, **named: object) -> str:
            leases.release_all("late")
            return draft(*arguments, **named)

        base.draft = draft_slowly
        result = late.sync_back()
    assert "has ended" in only(result.failed).reason
    assert (site.base / "a.txt").read_text() == TEXT
    assert list((site.base / ".contextbase/incoming").iterdir()) == []


def test_a_file_that_changes_between_merge_and_write_is_merged_again(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text(lines_of(TEXT, line_2="MINE"))
    base = worker._opened.base
    draft, left = base.draft, ["THEIRS, TWICE", "THEIRS"]

    def change_meanwhile(*arguments: object, **named: object) -> str:
        made = draft(*arguments, **named)
        if left:
            site.put("a.txt", lines_of(TEXT, line_28=left.pop()))
        return made

    base.draft = change_meanwhile
    assert outcomes(worker.sync_back()) == {"a.txt": "merged"}
    assert (site.base / "a.txt").read_text() == lines_of(TEXT, line_2="MINE", line_28="THEIRS, TWICE")
    assert worker.sync_back().files == ()


def test_many_workers_at_once_all_get_in(site: Site) -> None:
    site.put("a.txt")
    workers = [site.worker(f"worker-{number}", "a.txt") for number in range(8)]
    for number, worker in enumerate(workers):
        worker.path_of("a.txt").write_text(lines_of(TEXT, **{f"line_{1 + number * 4}": f"WORKER {number}"}))
    results: list[SyncResult] = []
    threads = [threading.Thread(target=lambda worker=worker: results.append(worker.sync_back())) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert [result.is_complete for result in results] == [True] * 8
    changed = {f"line_{1 + number * 4}": f"WORKER {number}" for number in range(8)}
    assert (site.base / "a.txt").read_text() == lines_of(TEXT, **changed)


@pytest.mark.parametrize("name", ["a*b.txt", "what?.txt", "***", "ü.txt", "with space"])
def test_unusual_names_come_back_like_others(site: Site, name: str) -> None:
    site.put(name)
    worker = site.worker("one", "**")
    worker.path_of(name).write_text("mine\n")
    assert outcomes(worker.sync_back()) == {name: "success"}
    assert (site.base / name).read_text() == "mine\n"


def test_an_interrupt_just_after_the_write_does_not_make_it_happen_twice(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("n.crdt.json", '{"n": {"$counter": 1}}')
    worker = site.worker("one", "n.crdt.json")
    site.put("n.crdt.json", '{"n": {"$counter": 3}}')
    worker.path_of("n.crdt.json").write_text('{"n": {"$counter": 11}}')
    base = worker._opened.base
    move = base.move_draft

    def interrupted(name: str, path: str) -> None:
        move(name, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(base, "move_draft", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.sync_back()
    assert worker.sync_back().is_complete
    assert json.loads((site.base / "n.crdt.json").read_text()) == {"n": {"$counter": 13}}


def test_a_disk_that_is_full_leaves_whole_files_and_a_later_sync_finishes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(worker._opened.base, "draft", full)
        assert only(worker.sync_back().failed).reason == "No space left on device."
    assert (site.base / "a.txt").read_text() == TEXT
    assert worker.sync_back().is_complete


def test_outcomes_are_named_as_documented() -> None:
    assert [outcome.value for outcome in SyncOutcome] == ["success", "merged", "conflict", "failed"]


def test_the_base_folder_shows_nothing_but_its_files(site: Site) -> None:
    site.put("a.txt")
    worker = site.worker("one", "a.txt")
    worker.path_of("a.txt").write_text("mine\n")
    worker.sync_back()
    assert {entry.name for entry in site.base.iterdir()} == {"a.txt", ".contextbase"}
    assert (site.base / ".contextbase/.gitignore").read_text() == "*\n"
    assert list((site.base / ".contextbase/incoming").iterdir()) == []
