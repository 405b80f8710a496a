"""What `contextbase purge` says before it asks."""

import pytest

from contextbase.interfaces.cli.reverting import _print_purge
from contextbase.wire.reverting import PurgeView

VIEW = PurgeView(hashes=["0" * 64], deleted=[], projects=[], session_files=2, attachments=1, purged=False)


def test_a_purge_says_what_sessions_would_lose(capsys: pytest.CaptureFixture[str]) -> None:
    _print_purge(VIEW)
    assert "Sessions would lose 2 stored files and 1 attached file." in capsys.readouterr().out
    _print_purge(VIEW.model_copy(update={"session_files": 0, "attachments": 0}))
    assert "Sessions" not in capsys.readouterr().out
