"""Each benchmark runs, in small, and says all that it is asked for; how fast things are is no test's affair."""

import json
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.agent_clis import cache_folder, installed
from tests.support.require import require_program, require_root

ROOT = Path(__file__).parents[2]
_TIMEOUT = 900


def figures_of(module: str, *options: str, folder: Path) -> dict[str, object]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
    environment["CONTEXTBASE_AGENT_CLIS"] = str(cache_folder())
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *options, "--json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, object] = json.loads(done.stdout)
    return figures


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the accounts of the database and the agents can reach, which pytest's own is not."""
    with TemporaryDirectory(prefix="contextbase-bench-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def test_workspaces(folder: Path) -> None:
    require_root()
    small = ("--files", "300", "--more-files", "600", "--rounds", "3", "--crowd", "20")
    figures = figures_of("workspaces", *small, folder=folder)
    expected = "mount_floor_ms commit_floor_ms create_no_db_ms create_ms git_worktree_ms cp_ms detect_ms git_status_ms "
    expected += "complete_ms remove_ms storage_ratio_100_agents read_first_ratio read_warm_ratio read_1mb_ratio "
    expected += "refresh_100_changes_ms refresh_100_changes_50k_ms "
    assert figures.keys() >= {*expected.split(), "thousand_create_s"}
    assert figures["storage_ratio_100_agents"] == pytest.approx(1, abs=0.02)


def test_landing(folder: Path) -> None:
    figures = figures_of("landing", "--agents", "2", "--seconds", "1", "--conflicts", "0.2", folder=folder)
    expected = "lands_per_second settled_per_second p50_ms p99_ms in_review superseded in_process_lands_per_second "
    assert figures.keys() >= {*expected.split(), "git_lands_per_second", "git_given_up"}
    assert (figures["lost"], figures["in_process_lost"]) == (0, 0)


def test_files(folder: Path) -> None:
    installed("filesystem")  # with this account's settings of npm, which a benchmark's environment has not
    require_program("curl", "apt-get install curl")
    small = ("--rounds", "3", "--files", "60", "--seconds", "1", "--tree", "1200", "--mebibytes", "2")
    figures = figures_of("files", *small, folder=folder)
    assert figures.keys() >= {"mcp_read_ms", "fs_server_read_ms", "mcp_connect_ms", "mcp_tool_list_characters"}
    assert figures.keys() >= {"search_ms", "git_grep_ms", "ripgrep_ms", "index_s", "landing_with_index_ratio"}
    assert figures.keys() >= {"list_ms", "tree_ms", "info_ms", "scandir_ms", "find_ms"}
    assert figures.keys() >= {"upload_mb_s", "download_mb_s", "cp_mb_s", "upload_ratio", "download_ratio"}


def test_feed(folder: Path) -> None:
    figures = figures_of("feed", "--readers", "3", "--seconds", "1", folder=folder)
    assert (figures["missed"], figures["out_of_order"]) == (0, 0)
    assert figures.keys() >= {"p99_lag_ms", "bytes_per_second"}


def test_history(folder: Path) -> None:
    figures = figures_of("history", "--commits", "1000", "--files", "200", folder=folder)
    questions = ("log", "diff", "blame", "tree")
    assert figures.keys() == {*(f"{who}{what}_ms" for what in questions for who in ("", "git_")), "undo_s"}


def test_sandbox(folder: Path) -> None:
    require_root()
    require_program("bwrap", "scripts/system-packages.sh")
    figures = figures_of("sandbox", "--files", "10", "--rounds", "1", "--crowd", "10", folder=folder)
    expected = "bwrap_exec_ms bare_exec_ms run_command_ms run_command_10_files_ms pty_first_byte_ms hundred_start_s"
    assert figures.keys() >= {*expected.split(), "docker_exec_ms", "docker_cli_exec_ms"}


def test_worker(folder: Path) -> None:
    small = ("--rounds", "2", "--streams", "2", "--events", "3", "--pause", "0")
    small += ("--runs", "20", "--turns", "2", "--sessions", "2")
    figures = figures_of("worker", *small, folder=folder)
    expected = "gateway_added_ms gateway_first_token_ms direct_first_token_ms gateway_streams_ratio "
    expected += "claims_per_s bare_skip_locked_per_s queue_to_first_event_ms bare_exec_ms snapshot_ms "
    expected += "wake_to_first_token_ms first_token_added_ms hundred_sessions_s hundred_docker_cli_s "
    expected += "idle_session_mb idle_cli_mb "
    assert figures.keys() >= {*expected.split(), "gateway_streams_seconds", "direct_streams_seconds"}


def test_platform(folder: Path) -> None:
    require_root()
    small = ("--apps", "5", "--users", "10", "--files", "20", "--changes", "2", "--rounds", "2", "--without-docker")
    figures = figures_of("platform", *small, "--bindings", "100", folder=folder)
    assert figures.keys() >= {"authorize_us", "login_ms", "argon2_ms", "out_ms"}
    assert figures.keys() >= {"store_ms", "effective_config_ms", "restore_1000_files_ms", "sync_100_changes_ms"}


def test_agents(folder: Path) -> None:
    small = ("--rounds", "2", "--sessions", "2", "--words", "3", "--events", "200")
    figures = figures_of("agents", *small, folder=folder)
    expected = "first_token_added_ms event_lag_p99_ms replay_10k_events_ms resume_after_restart_ms rewind_ms"
    assert figures.keys() >= set(expected.split())
    added = figures["first_token_added_ms"]
    assert isinstance(added, dict)
    assert added.keys() == {"claude", "codex", "opencode"}


def test_merge(folder: Path) -> None:
    case = {
        "type": "json",
        "path": "a.json",
        "base": '{\n  "a": 1\n}\n',
        "ours": '{\n  "a": 1,\n  "b": 2\n}\n',
        "theirs": '{\n  "a": 1,\n  "c": 3\n}\n',
        "resolved": '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}\n',
        "git": "conflict",
    }
    corpus = folder / "corpus.jsonl.xz"
    corpus.write_bytes(lzma.compress(json.dumps(case).encode()))
    figures = figures_of("merge", "--corpus", str(corpus), folder=folder)
    assert figures.keys() == {"types", "speed"}
    types, speed = figures["types"], figures["speed"]
    assert isinstance(types, dict)
    assert isinstance(speed, dict)
    counted = {"cases": 1, "git_conflicts": 1, "solved": 1, "wrong": 0, "git_clean_changed": 0, "invalid_new": 0}
    assert types["json"].items() >= counted.items()
    assert types["json"].keys() >= {"precision", "ms_median", "ms_p95"}
    assert speed.keys() == {"ours_ms_1k", "git_process_ms_1k", "ours_ms_20k", "git_process_ms_20k"}


def test_merge_counts_no_change_where_git_makes_a_key_stand_twice_in_yaml_with_tags_of_its_own(folder: Path) -> None:
    base = "a: !include a.yaml\n" + "".join(f"key{number}: {number}\n" for number in range(9))
    ours, theirs = "new: 1\n" + base, base + "new: 1\n"
    case = {"type": "yaml", "path": "a.yaml", "base": base, "ours": ours, "theirs": theirs, "resolved": ours}
    corpus = folder / "corpus.jsonl.xz"
    corpus.write_bytes(lzma.compress(json.dumps({**case, "git": "differs"}).encode()))
    types = figures_of("merge", "--corpus", str(corpus), folder=folder)["types"]
    assert isinstance(types, dict)
    assert types["yaml"].items() >= {"cases": 1, "git_clean_changed": 0, "invalid_new": 0}.items()
