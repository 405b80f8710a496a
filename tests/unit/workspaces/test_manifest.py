"""When a copied file may be taken for unchanged without being read."""

import os
from pathlib import Path

from contextbase.workspaces.copies import _Manifest, _signature


def test_a_file_as_it_was_given_need_not_be_read(tmp_path: Path) -> None:
    status, later = _given(tmp_path)
    manifest = _Manifest({"a": _signature(status)}, {}, {}, later)
    assert manifest.is_untouched("a", status)
    assert not manifest.is_untouched("b", status)
    (tmp_path / "a").write_bytes(b"2")
    os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))  # a faked time does not help
    assert not manifest.is_untouched("a", (tmp_path / "a").stat())


def test_a_file_written_in_the_manifests_own_tick_is_always_read(tmp_path: Path) -> None:
    status, _ = _given(tmp_path)
    manifest = _Manifest({"a": _signature(status)}, {}, {}, status.st_ctime_ns)
    assert not manifest.is_untouched("a", status)


def _given(folder: Path) -> tuple[os.stat_result, int]:
    (folder / "a").write_bytes(b"1")
    status = (folder / "a").stat()
    return status, status.st_ctime_ns + 1_000_000_000
