"""What a failing property test says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAILING = """
from hypothesis import given, strategies as st

@given(number=st.integers())
def test_that_fails(number):
    assert number < 4711
"""


@pytest.mark.parametrize("as_in_ci", [True, False])
def test_a_failing_property_test_prints_its_example_and_how_to_try_it_again(tmp_path: Path, as_in_ci: bool) -> None:
    file = tmp_path / "test_failing.py"
    file.write_text(FAILING)
    environment = {name: value for name, value in os.environ.items() if name != "CONTEXTBASE_TEST_REQUIRE"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", str(file)],
        cwd=ROOT,
        env=environment | ({"CONTEXTBASE_TEST_REQUIRE": "all"} if as_in_ci else {}),
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    assert "number=4711" in run.stdout
    assert "@reproduce_failure(" in run.stdout
