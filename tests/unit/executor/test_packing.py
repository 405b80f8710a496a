"""The executor as one file: only the standard library, the same build each time, and it starts."""

import ast
import subprocess
import sys
import zipfile
from importlib.resources import files
from io import BytesIO
from pathlib import Path

from contextbase.executor.packing import packed_executor

SOURCE = Path(str(files("contextbase")))
PARTS = ("channel", "agents", "executor")


def imports_of(place: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(place.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            found.add(node.module)
    return found


def test_what_runs_inside_imports_the_standard_library_and_itself_alone() -> None:
    ours = {"contextbase", *(f"contextbase.{part}" for part in PARTS)}
    for part in PARTS:
        for place in (SOURCE / part).glob("*.py"):
            for name in imports_of(place):
                is_ours = name == "contextbase" or any(name.startswith(f"{each}.") for each in ours - {"contextbase"})
                assert is_ours or name.partition(".")[0] in sys.stdlib_module_names, (place, name)


def test_it_is_the_same_build_each_time_and_has_nothing_of_the_server() -> None:
    first = packed_executor()
    packed_executor.cache_clear()
    assert packed_executor().build == first.build
    names = zipfile.ZipFile(BytesIO(first.content)).namelist()
    assert {name.split("/")[1] for name in names if "/" in name} == {"__init__.py", "__init__.pyc", *PARTS}


def test_it_starts_where_nothing_is_installed(tmp_path: Path) -> None:
    place = tmp_path / "executor.pyz"
    place.write_bytes(packed_executor().content)
    assert loaded_from(place) == f"{place}/contextbase/executor/program.pyc"


def test_another_version_of_python_reads_the_modules_themselves(tmp_path: Path) -> None:
    place = tmp_path / "executor.pyz"
    with zipfile.ZipFile(BytesIO(packed_executor().content)) as packed, zipfile.ZipFile(place, "w") as other:
        for name in packed.namelist():
            content = packed.read(name)
            other.writestr(name, b"\x00\x00\r\n" + content[4:] if name.endswith(".pyc") else content)
    assert loaded_from(place) == f"{place}/contextbase/executor/program.py"


def loaded_from(place: Path) -> str:
    line = "import sys; sys.path.insert(0, sys.argv[1]); import contextbase.executor.program as p; print(p.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", line, place], capture_output=True, text=True, check=True, env={}, timeout=60
    )
    return done.stdout.strip()
