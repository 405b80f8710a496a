"""The import contracts in pyproject.toml, which `lint-imports` checks."""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

SOURCE = Path(str(files("contextbase")))


def contract(name: str) -> dict[str, Any]:
    settings = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())
    [found] = [one for one in settings["tool"]["importlinter"]["contracts"] if one["name"].startswith(name)]
    return dict(found)


def modules_in(package: str) -> set[str]:
    folder = SOURCE.joinpath(*package.split(".")[1:])
    names = {file.stem for file in folder.glob("*.py")} | {file.parent.name for file in folder.glob("*/__init__.py")}
    return {f"{package}.{name}" for name in names - {"__init__"}}


def test_every_module_but_the_gate_is_kept_from_moving_a_projects_head() -> None:
    apart = {"contextbase.gate", "contextbase.bootstrap", "contextbase.storage"}
    movers = {"contextbase.storage.head", "contextbase.storage.landing"}
    expected = (modules_in("contextbase") - apart) | (modules_in("contextbase.storage") - movers)
    assert set(contract("Only the gate moves a project's head")["source_modules"]) == expected
