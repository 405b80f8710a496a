"""Where this machine has agent programs, and where sandboxes see them: read-only, one copy for all."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from contextbase.agents.registry import adapters

__all__ = ["PROGRAMS_INSIDE", "AgentPrograms"]

PROGRAMS_INSIDE: Final = PurePosixPath("/opt/agents")

_PACKAGES: Final = {package.folder: package for adapter in adapters() if (package := adapter.package) is not None}
_LONGEST_VERSION: Final = 100


class AgentPrograms:
    """`folders` are those of the operator: in each, one folder for each agent program."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self._folders = tuple(folders)

    def mounts(self) -> tuple[tuple[Path, PurePosixPath], ...]:
        """What is bound where; the operator's folders before what Python has. Blocks for a moment."""
        found: dict[str, tuple[Path, PurePosixPath]] = {}
        for folder in self._folders:
            for program in sorted(folder.iterdir()) if folder.is_dir() else ():
                if program.is_dir():
                    found.setdefault(program.name, (program.resolve(), PROGRAMS_INSIDE / program.name))
        for name, package in _PACKAGES.items():  # `pip install contextbase[claude]` installs it beside us
            module = package.python
            if module is not None and name not in found and (place := _module_folder(module)) is not None:
                found[name] = (place, PROGRAMS_INSIDE / name / module)
        return tuple(found.values())

    def installed(self) -> frozenset[str]:
        """The names of the folders with agent programs that sandboxes will see."""
        return frozenset(self.versions())

    def versions(self) -> Mapping[str, str | None]:
        """The same, each with the version that its installer wrote down; no program is run."""
        return {name: _version(name, place) for place, target in self.mounts() for name in [_name(target)]}


def _name(target: PurePosixPath) -> str:
    return target.relative_to(PROGRAMS_INSIDE).parts[0]


def _version(name: str, place: Path) -> str | None:
    """By pip (into a folder, or beside us) or npm."""
    package = _PACKAGES.get(name)
    if package is None:
        return None
    for folder in (place, place.parent) if package.python is not None else ():
        for information in folder.glob(f"{package.python}-*.dist-info"):
            return information.name.removeprefix(f"{package.python}-").removesuffix(".dist-info")
    try:
        about = json.loads((place / "node_modules" / (package.npm or "") / "package.json").read_bytes())
        return str(about["version"])[:_LONGEST_VERSION]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _module_folder(module: str) -> Path | None:
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).resolve()
