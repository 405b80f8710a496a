"""A file that the last snapshot has is compared with it, not stored again."""

import os
import tracemalloc
from pathlib import Path

from contextbase.ids import ContentHash
from contextbase.sessions.snapshot_model import SessionFile, StoredPiece
from contextbase.sessions.snapshots import _unchanged
from contextbase.sessions.state_files import StateFile
from contextbase.storage.model import Kind


def test_a_large_file_is_compared_part_by_part(tmp_path: Path) -> None:
    content = os.urandom(16 << 20)
    file = tmp_path / "model.bin"
    file.write_bytes(content)
    pieces = (StoredPiece(hash=ContentHash.of(content), size=len(content)),)
    earlier = SessionFile(name=b"model.bin", kind=Kind.FILE, pieces=pieces)
    found = StateFile(name=b"model.bin", kind=Kind.FILE, size=len(content), executable=False)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        tracemalloc.start()
        assert _unchanged(descriptor, earlier, found) == (pieces, len(content))
        _, most = tracemalloc.get_traced_memory()
        assert most < len(content) / 2
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert _unchanged(descriptor, earlier, found) == ((), 0)
    finally:
        tracemalloc.stop()
        os.close(descriptor)
