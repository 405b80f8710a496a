import sys
from pathlib import Path

import pytest
from tests.support.require import require_program


def test_a_program_of_the_virtual_environment_is_found() -> None:
    assert Path(require_program("pytest", "make setup")).parent == Path(sys.executable).parent


def test_a_missing_program_skips_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTEXTBASE_TEST_REQUIRE", raising=False)

    with pytest.raises(pytest.skip.Exception, match=r"no-such-program.*make setup"):
        require_program("no-such-program", "make setup")


def test_a_missing_program_fails_the_test_where_nothing_may_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTBASE_TEST_REQUIRE", "all")

    with pytest.raises(pytest.fail.Exception, match="no-such-program"):
        require_program("no-such-program", "make setup")
