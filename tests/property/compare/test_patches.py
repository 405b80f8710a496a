"""A diff applied to A gives B, for every type; what is shown of values is what the real parsers read."""

import copy
import json
import tomllib
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextbase.compare import DiffKind, FileDiff, Side, apply, apply_cells, apply_changes, compare
from contextbase.compare.readers import READERS
from contextbase.merge import EntryKind
from contextbase.merge.budget import Budget
from contextbase.merge.sniff import FileType

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines are busy at times
keys = st.sampled_from(["a", "b", "c", "id", "name", "e/f", "g~h", "ü", "on", "1", "a.b"])
scalars = st.sampled_from(
    [True, False, 0, 1, -1, 1.5, "", "x", "y", "true", "1", "null", "two\nlines\n", " blank ", "# no", 10**15, "🙂"]
)
named = st.fixed_dictionaries({"id": st.sampled_from("pqrstu"), "v": scalars})
lists_of_named = st.lists(named, max_size=5, unique_by=lambda element: str(element["id"]))
values = st.recursive(
    scalars | lists_of_named,
    lambda inner: st.dictionaries(keys, inner, max_size=4) | st.lists(inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(keys, values, max_size=5)
records = st.dictionaries(keys, scalars, max_size=3)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A document, and what became of it by a few edits at any depth."""
    old = draw(documents)
    new = copy.deepcopy(old)
    for _ in range(draw(st.integers(0, 4))):
        edit(draw, new)
    return old, new


def edit(draw: st.DrawFn, place: Any) -> None:
    children = list(place.values()) if isinstance(place, dict) else list(place)
    inner = [child for child in children if isinstance(child, (dict, list)) and child]
    if inner and draw(st.booleans()):
        edit(draw, draw(st.sampled_from(inner)))
    elif isinstance(place, dict):
        key = draw(keys)
        if key in place and draw(st.booleans()):
            del place[key]
        else:
            place[key] = draw(values)
    elif place and draw(st.booleans()):
        place.insert(draw(st.integers(0, len(place))), place.pop(draw(st.integers(0, len(place) - 1))))
    else:
        place.insert(draw(st.integers(0, len(place))), draw(values))


def as_toml(document: dict[str, Any]) -> str:
    """Tables and arrays of tables where TOML has them, inline values elsewhere."""
    plain, tables = [], []
    for key, value in document.items():
        name = json.dumps(key, ensure_ascii=False)
        if isinstance(value, dict) and value:
            tables.append((f"[{name}]", value))
        elif isinstance(value, list) and value and all(isinstance(element, dict) for element in value):
            tables += [(f"[[{name}]]", element) for element in value]
        else:
            plain.append(f"{name} = {inline(value)}")
    entries = [[f"{json.dumps(k, ensure_ascii=False)} = {inline(v)}" for k, v in table.items()] for _, table in tables]
    blocks = [plain, *([header, *lines] for (header, _), lines in zip(tables, entries, strict=True))]
    return "\n".join(line for block in blocks for line in block) + "\n"


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def meaning(data: Any) -> Any:
    """What a reader's data say, as the real parsers have it."""
    if isinstance(data, dict):
        return {key: meaning(value) for key, value in data.items()}
    if isinstance(data, list):
        return list(map(meaning, data))
    return json.loads(data) if isinstance(data, bytes) else data


def read(kind: FileType, text: str) -> Any:
    return READERS[kind](text, Budget(10)).data


def diff_of(old: str, new: str, path: str) -> FileDiff:
    sides = Side.of(old.encode()), Side.of(new.encode())
    diff = compare(*sides, path=path)
    applied = apply(sides[0], diff)
    assert applied is not None
    assert applied.content == new.encode()
    return diff


def check_structure(old: str, new: str, path: str, kind: FileType) -> None:
    diff = diff_of(old, new, path)
    if old != new:
        assert diff.kind is DiffKind.STRUCTURE, diff.notes
    assert apply_changes(read(kind, old), diff.changes) == read(kind, new)


@patient
@given(pairs(), st.sampled_from([None, 2]))
def test_json_changes_make_the_old_value_the_new_one(pair: tuple[Any, Any], indent: int | None) -> None:
    old, new = (json.dumps(side, indent=indent, ensure_ascii=False) for side in pair)
    check_structure(old, new, "a.json", FileType.JSON)
    assert meaning(read(FileType.JSON, new)) == pair[1]


@patient
@given(pairs())
def test_json_with_comments_is_read_past_them(pair: tuple[Any, Any]) -> None:
    old, new = (f"// above\n{json.dumps(side, indent=1)} /* below */\n" for side in pair)
    check_structure(old, new, "a.jsonc", FileType.JSON)


@patient
@given(st.lists(records, max_size=4), st.lists(records, max_size=4))
def test_json_lines_are_a_list_of_records(old: list[Any], new: list[Any]) -> None:
    texts = ["".join(json.dumps(record) + "\n" for record in side) for side in (old, new)]
    check_structure(texts[0], texts[1], "a.jsonl", FileType.JSON_LINES)


@patient
@given(pairs(), st.booleans())
def test_yaml_changes_make_the_old_value_the_new_one(pair: tuple[Any, Any], flow: bool) -> None:
    old, new = (yaml.safe_dump(side, default_flow_style=flow, allow_unicode=True, sort_keys=False) for side in pair)
    check_structure(old, new, "a.yaml", FileType.YAML)
    assert meaning(read(FileType.YAML, new)) == yaml.safe_load(new)


@patient
@given(pairs())
def test_toml_changes_make_the_old_value_the_new_one(pair: tuple[Any, Any]) -> None:
    old, new = map(as_toml, pair)
    check_structure(old, new, "a.toml", FileType.TOML)
    assert meaning(read(FileType.TOML, new)) == tomllib.loads(new)


sources = st.lists(st.sampled_from(["x = 1\n", "y = 2\n", "print(x)\n", "z"]), max_size=4)
cells = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abcdef"),
        "cell_type": st.sampled_from(["code", "markdown"]),
        "source": sources | sources.map("".join),
        "metadata": st.dictionaries(st.sampled_from("tu"), st.booleans(), max_size=1),
        "outputs": st.lists(st.integers(0, 1), max_size=1),
    }
)
cell_lists = st.lists(cells, max_size=5, unique_by=lambda cell: str(cell["id"]))


@patient
@given(cell_lists, cell_lists, st.booleans(), st.dictionaries(st.sampled_from("kl"), st.integers(0, 1)))
def test_cell_diffs_make_the_old_cells_the_new_ones(old: list[Any], new: list[Any], ids: bool, metadata: Any) -> None:
    if not ids:
        old, new = ([{key: cell[key] for key in cell if key != "id"} for cell in side] for side in (old, new))
    texts = [json.dumps({"cells": old, "metadata": {}}), json.dumps({"cells": new, "metadata": metadata})]
    diff = diff_of(texts[0], texts[1], "a.ipynb")
    was, now = (["".join(cell["source"]) for cell in side] for side in (old, new))
    assert apply_cells(was, diff.cells) == now
    assert apply_changes({"metadata": {}}, diff.changes) == read(FileType.JSON, json.dumps({"metadata": metadata}))


texts = st.text(alphabet=st.sampled_from("ab\n\r\0é🙂"), max_size=40)
contents = st.one_of(
    texts.map(str.encode),
    texts.map(lambda text: text.encode("utf-16")),
    texts.map(lambda text: ("\ufeff" + text).encode()),
    st.binary(max_size=40),
)
sides = (
    st.none()
    | st.builds(Side.of, contents, kind=st.sampled_from([EntryKind.FILE, EntryKind.SYMLINK]), executable=st.booleans())
    | st.builds(Side.folder)
)


@patient
@given(sides, sides, st.sampled_from(["a", "a.txt", "a.json", "a.yaml", "a.toml", "a.ipynb"]))
def test_any_two_sides_can_be_compared_and_the_diff_applied(old: Side | None, new: Side | None, path: str) -> None:
    diff = compare(old, new, path=path)
    result = apply(old, diff)
    assert (result is None) == (new is None)
    if result is not None and new is not None:
        assert (result.kind, result.executable, result.size, result.hash) == (
            new.kind,
            new.executable,
            new.size,
            new.hash,
        )
        if diff.kind is not DiffKind.BINARY and new.kind is not EntryKind.DIRECTORY:
            assert result.content == new.content
