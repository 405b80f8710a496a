"""Checks that the docs are true where a machine can tell: links lead somewhere, settings and commands are described,
the limits on length hold. Prints each problem and exits 1 if there is one."""

import re
import sys
from pathlib import Path

from typer.main import get_command

from contextbase.config import Settings
from contextbase.interfaces.cli.main import app

ROOT = Path(__file__).parent.parent
LONGEST = {"README.md": 130, "docs/architecture.md": 200, "CONTRIBUTING.md": 60}


def main() -> int:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    texts = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in pages}
    problems = [
        *broken_links(texts),
        *missing_files(texts),
        *missing_from_reference(texts),
        *too_long(texts),
        *adr_problems(texts),
    ]
    for problem in problems:
        print(problem)
    print(f"docs: {len(texts)} pages, {len(problems)} problems")
    return 1 if problems else 0


def broken_links(texts: dict[str, str]) -> list[str]:
    found = []
    for name, text in texts.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                continue
            if not (ROOT / name).parent.joinpath(target.split("#")[0]).exists():
                found.append(f"{name}: the link to {target} leads nowhere")
    return found


def missing_files(texts: dict[str, str]) -> list[str]:
    """What CONTRIBUTING's table of questions names is there."""
    source, rows = ROOT / "src/contextbase", re.findall(r"^\|.*\?.*\|(.*)\|$", texts["CONTRIBUTING.md"], re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    return [f"CONTRIBUTING.md: src/contextbase/{name} does not exist" for name in named if not (source / name).exists()]


def missing_from_reference(texts: dict[str, str]) -> list[str]:
    """Every setting and every command is in docs/reference.md."""
    reference = texts.get("docs/reference.md", "")
    wanted = [setting.variable for setting in Settings.known().values()]
    wanted += [f"contextbase {command}" for command in commands()]
    return [f"docs/reference.md: `{name}` is not described" for name in wanted if f"`{name}`" not in reference]


def commands() -> list[str]:
    names = []
    for name, command in getattr(get_command(app), "commands", {}).items():
        inner = getattr(command.load(), "commands", None)
        names.extend([f"{name} {child}" for child in inner] if inner else [name])
    return names


def too_long(texts: dict[str, str]) -> list[str]:
    return [
        f"{name}: {len(texts[name].splitlines())} lines, {most} is the most"
        for name, most in LONGEST.items()
        if name in texts and len(texts[name].splitlines()) > most
    ]


def adr_problems(texts: dict[str, str]) -> list[str]:
    """Decisions are numbered without gaps and have the four parts."""
    records = sorted(name for name in texts if re.fullmatch(r"docs/adr/\d{4}-[a-z0-9-]+\.md", name))
    found = [
        f"{name}: should be number {number:04d}"
        for number, name in enumerate(records, start=1)
        if not name.startswith(f"docs/adr/{number:04d}-")
    ]
    parts = ("## Context", "## Decision", "## Consequences", "## Alternatives")
    found += [f"{name}: has no part '{part[3:]}'" for name in records for part in parts if part not in texts[name]]
    return found


if __name__ == "__main__":
    sys.exit(main())
