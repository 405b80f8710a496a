"""Generates the blocking client, `contextbase.sdk.blocking`, from the async one, `contextbase.sdk.aio`.

    python scripts/generate_blocking_sdk.py            write what has changed
    python scripts/generate_blocking_sdk.py --check    exit 1 if something is not up to date

Every module is translated token by token: `await` and `async` go, and names get their blocking counterparts.
`waiting.py`, which cannot be translated, is written by hand on both sides."""

import io
import re
import subprocess
import sys
import tokenize
from itertools import accumulate
from pathlib import Path

SDK = Path(__file__).parent.parent / "src" / "contextbase" / "sdk"
SOURCE, TARGET = SDK / "aio", SDK / "blocking"
BY_HAND = {"__init__.py", "waiting.py"}
RUFF = Path(sys.executable).with_name("ruff")

NAMES = {
    "AbstractAsyncContextManager": "AbstractContextManager",
    "AsyncGenerator": "Generator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aclosing": "closing",
    "aio": "blocking",
    "aiter_bytes": "iter_bytes",
    "aiter_raw": "iter_raw",
    "aread": "read",
    "asynccontextmanager": "contextmanager",
    "asyncio": "sync",  # of websockets
}
PROSE = (
    (r"\basync (with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\baclosing\b", "closing"),
)


def main() -> int:
    is_check = sys.argv[1:] == ["--check"]
    wanted = {path.name: generated(path) for path in sorted(SOURCE.glob("*.py")) if path.name not in BY_HAND}
    found = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py") if path.name not in BY_HAND}
    stale = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    for name in stale:
        if not is_check and name in wanted:
            (TARGET / name).write_text(wanted[name], encoding="utf-8")
        elif not is_check:
            (TARGET / name).unlink()
    told = "not up to date: run `make format`" if is_check else "written"
    print(f"blocking SDK: {f'{told}: ' + ', '.join(stale) if stale else 'up to date'}")
    return 1 if is_check and stale else 0


def generated(path: Path) -> str:
    note = f"# Generated from aio/{path.name} by scripts/{Path(__file__).name}. Change that file, not this one.\n"
    text = note + translated(path.read_text(encoding="utf-8"))
    target = ["--stdin-filename", str(TARGET / path.name), "-"]
    for command in (["check", "--quiet", "--fix-only", "--select", "I,F401"], ["format", "--quiet"]):
        text = subprocess.run([RUFF, *command, *target], input=text, capture_output=True, text=True, check=True).stdout
    return text


def translated(text: str) -> str:
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    edits: list[tuple[int, int, str]] = []
    for position, token in enumerate(tokens):
        begin, end = (lines[row - 1] + column for row, column in (token.start, token.end))
        if token.type == tokenize.STRING:
            edits.append((begin, end, blocking_text(token.string)))
        elif token.string in ("async", "await"):
            edits.append((begin, end + 1, ""))  # with the space behind it
        elif token.string in ("Awaitable", "AsyncGenerator") and tokens[position + 1].string == "[":
            row, column = closing_bracket(tokens, position + 1).start
            close = lines[row - 1] + column
            if token.string == "Awaitable":
                edits += [(begin, end + 1, ""), (close, close + 1, "")]
            else:
                edits += [(begin, end, "Generator"), (close, close, ", None")]
        elif token.type == tokenize.NAME:
            edits.append((begin, end, blocking_name(token.string)))
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def closing_bracket(tokens: list[tokenize.TokenInfo], opening: int) -> tokenize.TokenInfo:
    depth = 0
    for token in tokens[opening:]:
        depth += {"[": 1, "]": -1}.get(token.string, 0)
        if depth == 0:
            return token
    raise ValueError("a bracket is not closed")


def blocking_name(name: str) -> str:
    return NAMES.get(name) or re.sub(r"^Async(?=[A-Z])", "", name)


def blocking_text(text: str) -> str:
    """Docstrings, and names of types in quotes. All other text stays."""
    if re.fullmatch(r'"Async[A-Z]\w*"', text):
        return f'"{blocking_name(text[1:-1])}"'
    for pattern, new in PROSE if text.startswith('"""') else ():
        text = re.sub(pattern, new, text)
    return text


if __name__ == "__main__":
    sys.exit(main())
