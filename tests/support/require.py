"""What a test needs from the machine. Missing, it skips the test; where nothing may be skipped, it fails it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

__all__ = ["require_program", "require_root", "unavailable"]


def unavailable(reason: str) -> None:
    """Skip the test, or fail it when CONTEXTBASE_TEST_REQUIRE=all says that everything must run."""
    if os.environ.get("CONTEXTBASE_TEST_REQUIRE") == "all":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def require_program(name: str, how_to_get: str) -> str:
    """The path of a program, from this virtual environment or the PATH."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        unavailable(f"This test needs the program '{name}'. To get it: {how_to_get}")
    return str(found)


def require_root() -> None:
    if os.geteuid() != 0:
        unavailable("This test is about running as root. To run it: sudo make test")
