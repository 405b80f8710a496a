"""Checks rules of the code that no other tool knows: a public class name means one thing in the whole package, a module
has at most 400 lines, and migrations are numbered one by one. Prints each problem and exits 1 if there is one."""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src"
MOST_LINES = 400
_CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)


def main() -> int:
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in ROOT.rglob("*.py")}
    problems = [*names_twice(texts), *too_long(texts), *misnumbered_migrations()]
    for problem in problems:
        print(problem)
    print(f"names: {len(texts)} modules, {len(problems)} problems")
    return 1 if problems else 0


def names_twice(texts: dict[str, str]) -> list[str]:
    places = defaultdict(list)
    for module, text in sorted(texts.items()):
        for name in _CLASS.findall(text):
            places[name].append(module)
    return [
        f"class {name} stands in {' and '.join(modules)}: rename one by what it is, so that a name means one thing"
        for name, modules in places.items()
        if len(modules) > 1
    ]


def too_long(texts: dict[str, str]) -> list[str]:
    lengths = {module: text.count("\n") for module, text in sorted(texts.items())}
    return [
        f"{module} has {lines} lines, over {MOST_LINES}: split it by noun"
        for module, lines in lengths.items()
        if lines > MOST_LINES
    ]


def misnumbered_migrations() -> list[str]:
    names = sorted(file.name for file in (ROOT / "contextbase/db/migrations").glob("*.sql"))
    return [
        f"the migration {name} should be number {number:04}: give the one that landed last the next number"
        for number, name in enumerate(names, start=1)
        if not name.startswith(f"{number:04}_")
    ]


if __name__ == "__main__":
    sys.exit(main())
