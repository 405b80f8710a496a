"""A search of a snapshot finds what grep finds in an export of it, however much of it is in the index."""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.gate_world import delete, rename, write
from tests.support.search_world import Found, SearchWorld

from contextbase.db.database import Database

_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

PATHS = ("a.txt", "b.py", "d/a.txt", "d/e/b.py", "日本.md", "z")
WORDS = ["foo", "Foo", "FOOBAR", "foo_bar", "a", "ab", "aab", "==>{", "日本語", "naïve", "Ärger", "12-345", "x.y"]
LINES = st.lists(st.sampled_from([*WORDS, "", " "]), max_size=4).map(" ".join)
TEXTS = st.tuples(st.lists(LINES, max_size=8).map("\n".join), st.sampled_from(["\n", ""])).map("".join)
CONTENTS = st.one_of(
    TEXTS.map(str.encode),
    TEXTS.map(lambda text: text.encode() + b"\0"),  # binary
    TEXTS.map(lambda text: (text + "\n").encode() * 50),
)
Step = tuple[str, str, str, bytes]
ACTIONS = st.sampled_from(["write", "write", "write", "delete", "rename", "index"])
STEPS = st.lists(st.tuples(ACTIONS, st.sampled_from(PATHS), st.sampled_from(PATHS), CONTENTS), min_size=1, max_size=10)
LITERALS = st.sampled_from([*WORDS, "=>", "日本", "_b", "o f", "zzz", "345", "foo foo", "ärger"])
# What RE2 and grep -E read alike. They may differ in where a match ends, not in which lines there are.
PIECES = st.sampled_from(
    [*["foo", "a", "b", "bar", "日", "ä", "_", "[a-c]", "[^a]", "[0-9]", ".", "(foo|bar)", "(a|日本)", "x\\.y"], " "]
)
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,3}"])
EXPRESSIONS = st.tuples(
    st.sampled_from(["", "", "^"]),
    st.lists(st.tuples(PIECES, REPEATS).map("".join), min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "", "$", "|foo", "|^$"]),
).map("".join)
WISHES = st.fixed_dictionaries(
    {"ignore_case": st.booleans(), "at": st.integers(0, 10), "limit": st.sampled_from([1, 3, 1000])}
)


@_SETTINGS
@given(steps=STEPS, literal=LITERALS, wishes=WISHES)
async def test_literal_text(
    embedded_database: Database, tmp_path: Path, steps: list[Step], literal: str, wishes: dict[str, Any]
) -> None:
    world = await SearchWorld.start(embedded_database, tmp_path)
    await _compare(world, steps, literal, is_expression=False, **wishes)


@_SETTINGS
@given(steps=STEPS, expression=EXPRESSIONS, wishes=WISHES)
async def test_regular_expressions(
    embedded_database: Database, tmp_path: Path, steps: list[Step], expression: str, wishes: dict[str, Any]
) -> None:
    world = await SearchWorld.start(embedded_database, tmp_path)
    await _compare(world, steps, expression, is_expression=True, **wishes)


async def _compare(
    world: SearchWorld, steps: list[Step], pattern: str, *, is_expression: bool, ignore_case: bool, at: int, limit: int
) -> None:
    head = await _committed(world, steps)
    seq = at % (head + 1)
    flags = ["-E" if is_expression else "-F", *["-i"] * ignore_case]
    found = await world.grep(pattern, at=seq, is_expression=is_expression, ignore_case=ignore_case, limit=limit)
    assert found == _grep(await world.gate.files(seq), pattern, *flags)


async def _committed(world: SearchWorld, steps: list[Step]) -> int:
    head = 0
    for action, path, other, content in steps:
        if action == "index":
            await world.index_all()
        elif action == "rename" and path != other:
            head = (await world.gate.commit(rename(path, other, head))).seq
        elif action == "delete":
            head = (await world.gate.commit(delete(path, head))).seq
        else:
            head = (await world.gate.commit(write(path, content, head))).seq
    return head


def _grep(tree: dict[str, bytes | None], pattern: str, *flags: str) -> list[Found]:
    with TemporaryDirectory() as name:
        for path, content in tree.items():
            if content is not None:
                file = Path(name, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        done = subprocess.run(
            ["grep", "-rnI", "--null", *flags, "-e", pattern, "."],
            cwd=name,
            capture_output=True,
            check=False,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
        )
    assert done.returncode in (0, 1), done.stderr
    found = []
    for row in done.stdout.decode().split("\n")[:-1]:
        path, rest = row.split("\0")
        number, line = rest.split(":", 1)
        found.append((path.removeprefix("./"), int(number), line))
    return sorted(found)
