"""The loader of named queries, and the queries there are."""

import re
import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

import pytest

from contextbase.db.queries import load_queries

SOURCE = Path(str(files("contextbase")))
PACKAGES = sorted(
    ".".join(("contextbase", *file.parent.relative_to(SOURCE).parts)) for file in SOURCE.rglob("queries.sql")
)


def used_queries() -> dict[str, set[str]]:
    """The queries that code names, by the package whose file it loads: not always its own."""
    used: dict[str, set[str]] = defaultdict(set)
    for file in SOURCE.rglob("*.py"):
        code = file.read_text()
        for variable, package in re.findall(r'^(\w+)(?:: Final)? = load_queries\("([\w.]+)"\)', code, re.MULTILINE):
            used[package] |= set(re.findall(rf"\b{variable}\.(\w+)", code))
    return used


USED = used_queries()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package whose queries.sql a test writes."""
    (tmp_path / "package_with_queries").mkdir()
    (tmp_path / "package_with_queries" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "package_with_queries", raising=False)
    return "package_with_queries"


def write(tmp_path: Path, text: str) -> None:
    (tmp_path / "package_with_queries" / "queries.sql").write_text(text)


def test_each_query_is_found_by_its_name(tmp_path: Path, package: str) -> None:
    write(tmp_path, "-- A file.\n\n-- name: one\n-- The first.\nSELECT 1\n\n-- name: two\nSELECT '-- name: not this'\n")
    queries = load_queries(package)
    assert list(queries) == ["one", "two"]
    assert queries.one == "-- The first.\nSELECT 1"
    assert queries.two == "SELECT '-- name: not this'"


def test_a_name_that_is_not_there_is_an_error_that_says_so(tmp_path: Path, package: str) -> None:
    write(tmp_path, "-- name: one\nSELECT 1")
    with pytest.raises(AttributeError, match="no query named three"):
        _ = load_queries(package).three


def test_a_name_used_twice_is_an_error(tmp_path: Path, package: str) -> None:
    write(tmp_path, "-- name: one\nSELECT 1\n-- name: one\nSELECT 2")
    with pytest.raises(ValueError, match="two queries or parts named one"):
        load_queries(package)


def test_a_part_stands_wherever_it_is_used_and_is_no_query(tmp_path: Path, package: str) -> None:
    users = "-- name: one\n-- use: all_of_it\nWHERE b\n\n-- name: two\n(\n    -- use: all_of_it\n)"
    write(tmp_path, f"-- part: all_of_it\nSELECT *\nFROM a\n\n{users}")
    queries = load_queries(package)
    assert list(queries) == ["one", "two"]
    assert queries.one == "SELECT *\nFROM a\nWHERE b"
    assert queries.two == "(\nSELECT *\nFROM a\n)"


def test_a_part_that_is_not_there_is_an_error(tmp_path: Path, package: str) -> None:
    write(tmp_path, "-- name: one\n-- use: later\n\n-- part: later\nSELECT 1")
    with pytest.raises(ValueError, match="query one uses later, which is no part before it"):
        load_queries(package)


def test_a_part_that_nothing_uses_is_an_error(tmp_path: Path, package: str) -> None:
    write(tmp_path, "-- part: all_of_it\nSELECT *\n-- name: one\nSELECT 1")
    with pytest.raises(ValueError, match="parts that nothing uses: all_of_it"):
        load_queries(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_query_of_ours_is_used(package: str) -> None:
    assert set(load_queries(package)) - USED[package] == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_query_our_code_names_is_there(package: str) -> None:
    assert USED[package] - set(load_queries(package)) == set()
