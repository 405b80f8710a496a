"""The wheel and the sdist: built from a copy, with everything the program needs inside."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("src", "tests", "requirements", "scripts", "pyproject.toml", "README.md", "LICENSE", "Makefile")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fresh build."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / part)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_the_wheel_holds_everything_the_program_reads(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [metadata] = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        entry_points = archive.read(metadata).decode()
    package = ROOT / "src" / "contextbase"
    wanted = {
        f"contextbase/{file.relative_to(package)}"
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {"contextbase/py.typed", "contextbase/audit/queries.sql"} <= wanted
    assert [name for name in wanted if name.startswith("contextbase/db/migrations/") and name.endswith(".sql")]
    assert wanted <= names
    assert not [name for name in names if name.startswith("tests/")]
    for command in ("contextbase", "cb"):
        assert f"{command} = contextbase.interfaces.cli.start:main" in entry_points


def test_the_sdist_holds_source_tests_and_licence(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"src/contextbase/py.typed", "tests/conftest.py", "LICENSE", "pyproject.toml", "Makefile"} <= names
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]


def test_both_commands_are_installed_beside_this_python() -> None:
    for command in ("contextbase", "cb"):
        program = Path(sys.executable).parent / command
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout.startswith("contextbase ")
