"""`doctor`'s findings: each part on its own, found or missing, with advice."""

import errno
import shutil
from pathlib import Path

import pytest

from contextbase import machine
from contextbase.config import Settings
from contextbase.errors import MachineProblem
from contextbase.machine import Finding, examine
from contextbase.workspaces import backend_choice
from contextbase.workspaces.backend_choice import choose_provider


def finding(name: str, settings: Settings) -> Finding:
    [found] = [each for each in examine(settings) if each.name == name]
    return found


def test_every_part_that_is_missing_says_how_to_get_it_or_what_happens_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    findings = {each.name: each for each in examine(Settings(data=tmp_path))}
    for name in ("bubblewrap", "docker", "git", "s3"):
        assert findings[name].answer == "no"
        assert findings[name].advice


def test_without_programs_for_this_platform_the_database_is_broken_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise MachineProblem("Set CONTEXTBASE_DATABASE_URL.")

    monkeypatch.setattr(machine, "find_binaries", missing)
    found = finding("database", Settings(data=tmp_path))
    assert (found.answer, found.advice) == ("broken", "Set CONTEXTBASE_DATABASE_URL.")
    external = Settings(data=tmp_path, database_url="postgresql://me:hunter2@db/x")
    assert finding("database", external).answer == "yes"
    assert "hunter2" not in str(examine(external))


def test_a_data_folder_that_is_not_there_yet_is_judged_by_where_it_would_be(tmp_path: Path) -> None:
    found = finding("data folder", Settings(data=tmp_path / "a" / "b"))
    assert found.answer == "yes"
    assert str(tmp_path / "a" / "b") in found.detail
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_without_keys_is_broken_and_names_the_variables(tmp_path: Path) -> None:
    without = Settings(data=tmp_path, blobs="s3://bucket")
    assert finding("s3", without).answer == "broken"
    assert "CONTEXTBASE_S3_ACCESS_KEY_ID" in finding("s3", without).advice
    keys = Settings(data=tmp_path, blobs="s3://bucket", s3_access_key_id="k", s3_secret_access_key="hunter2")
    assert finding("s3", keys).answer == "yes"
    assert "hunter2" not in finding("s3", keys).detail


def test_a_program_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = finding("bubblewrap", Settings(data=tmp_path))
    assert (found.answer, "no namespaces here" in found.detail) == ("no", True)


def test_the_overlay_finding_is_what_workspaces_will_use(tmp_path: Path) -> None:
    data = tmp_path / "not" / "there"
    chosen = choose_provider(tmp_path / "probe")
    found = finding("overlay", Settings(data=data))
    assert found.answer == ("yes" if chosen.name == "overlay" else "no")
    assert f"in {tmp_path}" in found.detail
    assert [each.name for each in tmp_path.iterdir()] == ["probe"]


def test_copies_that_were_asked_for_are_no_defect(tmp_path: Path) -> None:
    found = finding("overlay", Settings(data=tmp_path, workspace_provider="copy"))
    assert (found.answer, found.advice) == ("no", "")
    assert "copies" in found.detail


def test_an_overlay_that_was_asked_for_and_cannot_be_had_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(backend_choice, "mount_overlay", refused)
    asked = finding("overlay", Settings(data=tmp_path, workspace_provider="overlay"))
    assert (asked.answer, "Operation not permitted" in asked.detail) == ("broken", True)
    assert finding("overlay", Settings(data=tmp_path)).answer == "no"


def test_the_quota_is_said_with_when_it_is_looked_at(tmp_path: Path) -> None:
    found = finding("quota", Settings(data=tmp_path, workspace_max_files=7))
    assert "7 changes" in found.detail
    assert "checked at a commit" in found.detail
