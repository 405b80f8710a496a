"""Where this machine has agent programs, and where sandboxes see them: read-only, one copy for all."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["PROGRAMS_INSIDE", "AgentPrograms"]

PROGRAMS_INSIDE: Final = PurePosixPath("/opt/agents")

_PACKAGES: Final = {"claude": "claude_agent_sdk"}
"""Python packages that carry an agent program: `pip install contextbase[claude]` installs it beside us."""


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
        for name, package in _PACKAGES.items():
            if name not in found and (place := _package_folder(package)) is not None:
                found[name] = (place, PROGRAMS_INSIDE / name / package)
        return tuple(found.values())

    def installed(self) -> frozenset[str]:
        """The names of the agent programs that sandboxes will see."""
        inside = (target.relative_to(PROGRAMS_INSIDE).parts[0] for _, target in self.mounts())
        return frozenset(inside)


def _package_folder(package: str) -> Path | None:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).resolve()
