"""Generated histories: a diff makes one snapshot into the other, and a blame says what a replay says."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.history_world import HistoryWorld

from contextbase.compare import Side, apply
from contextbase.db.database import Database
from contextbase.gate.model import ChangeStatus, ContentKind, RequestedChange
from contextbase.ids import Seq
from contextbase.merge import EntryKind

_SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

PATHS = ("a.txt", "a.json", "b.yaml", "d", "d/a.txt", "d/b.toml", "d/e/a")
CONTENTS = st.sampled_from(
    [
        b"",
        b"one\n",
        b"one\ntwo\nthree\n",
        b"one\n2\nthree",
        b"\x00\xff",
        '{"a": [1, 2], "b": {}}'.encode("utf-16"),
        b'{"a": 1}',
        b'{"a": 2, "b": [1, {"c": null}]}',
        b"a: 1\nb:\n  - x\n",
        b"a: 2\n",
        b"a = 1\n[t]\nb = 2\n",
        b"{",
    ]
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "link", "delete", "rename", "mkdir"]),
        st.sampled_from(PATHS),
        st.sampled_from(PATHS),
        CONTENTS,
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)
Step = tuple[str, str, str, bytes, bool]


def _change(step: Step, head: int) -> RequestedChange:
    action, path, other, content, executable = step
    if action == "delete":
        return delete(path, head)
    if action == "rename" and path != other and not other.startswith(f"{path}/"):  # not into itself
        return rename(path, other, head)
    if action == "mkdir":
        return mkdir(path, head)
    if action == "link":
        return write(path, content or b"x", head, kind=ContentKind.SYMLINK)
    return write(path, content, head, executable=executable)


async def _tree(world: HistoryWorld, seq: int) -> dict[str, Side]:
    async with world.gate.database.connection() as connection:
        page = await world.gate.tree.page(connection, world.gate.project.id, Seq(seq), limit=1000)
    found = {}
    for entry in page:
        if entry.content_hash is None:
            found[str(entry.path)] = Side.folder()
            continue
        content = await world.gate.catalog.read(entry.content_hash)
        found[str(entry.path)] = Side.of(content, kind=EntryKind(entry.kind), executable=entry.executable)
    return found


def _facts(tree: dict[str, Side]) -> dict[str, object]:
    return {path: (side.kind, side.hash, side.executable) for path, side in tree.items()}


@_SETTINGS
@given(steps=STEPS, between=st.tuples(st.integers(0, 14), st.integers(0, 14)), limit=st.integers(1, 4))
async def test_a_diff_applied_to_one_snapshot_gives_the_other(
    embedded_database: Database, tmp_path: Path, steps: list[Step], between: tuple[int, int], limit: int
) -> None:
    world = await HistoryWorld.start(embedded_database, tmp_path)
    head = 0
    for step in steps:
        head = (await world.gate.commit(_change(step, head))).seq
    old, new = (seq % (head + 1) for seq in between)
    files = await world.diff(old, new, limit=limit)
    before = await _tree(world, old)
    after = {path: side for path, side in before.items() if path not in {file.diff.old_path for file in files}}
    for file in files:
        made = apply(before.get(file.diff.old_path or ""), file.diff)
        if made is not None:
            assert file.diff.new_path not in after
            after[file.diff.new_path or ""] = made
    assert _facts(after) == _facts(await _tree(world, new))


# (how many commits ago the writer looked, which of its lines it replaces, inserts before, removes)
EDITS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.sampled_from("rid")), min_size=1, max_size=15)


@_SETTINGS
@given(edits=EDITS, at=st.integers(0, 15))
async def test_a_blame_names_the_commit_that_wrote_each_line(
    embedded_database: Database, tmp_path: Path, edits: list[tuple[int, int, str]], at: int
) -> None:
    """Every line says which commit wrote it: whatever was merged, the blame must say the same."""
    world = await HistoryWorld.start(embedded_database, tmp_path)
    head = (await world.gate.commit(write("a", b"".join(b"1:%d\n" % number for number in range(20)), 0))).seq
    for lag, place, action in edits:
        base = max(1, head - lag)
        lines = ((await world.gate.files(base))["a"] or b"").splitlines(keepends=True)
        spot = place % (len(lines) + 1)
        fresh = [b"%d:%d\n" % (head + 1, number) for number in range(2)]
        lines[spot : spot + (action != "i")] = [] if action == "d" else fresh
        answer = await world.gate.commit(write("a", b"".join(lines), base))
        assert answer.changes[0].status is not ChangeStatus.REFUSED
        head = answer.seq
    for seq in (1 + at % head, head):
        content = (await world.gate.files(seq))["a"] or b""
        written = [int(line.split(b":")[0]) for line in content.splitlines()]
        assert await world.blamed("a", ref=str(seq)) == written
