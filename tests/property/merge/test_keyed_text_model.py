"""YAML and TOML merges against a naive merge of the parsed values, on files with comments and odd spacing."""

import copy
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from contextbase.merge.budget import Budget
from contextbase.merge.document import render
from contextbase.merge.formats.toml import TomlFormat
from contextbase.merge.formats.yaml import YamlFormat
from contextbase.merge.lockstep import Lockstep
from contextbase.merge.ports import Format
from contextbase.merge.threeway import merge_documents

MISSING = object()


class ContestedError(Exception):
    """Both sides changed one value."""


keys = st.sampled_from(["a", "b", "c", "long-key", "x_y"])
scalars = st.sampled_from([True, 0, 12, "word", "two words", "", "1.5", "it's", "# no comment", "a: b", "[x"])
tables = st.dictionaries(keys, scalars, max_size=4)
documents = st.dictionaries(keys, tables, max_size=4)


@st.composite
def edited(draw: st.DrawFn, base: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    side = copy.deepcopy(base)
    for _ in range(draw(st.integers(1, 3))):
        table = side.setdefault(draw(keys), {})
        key = draw(keys)
        if key in table and draw(st.booleans()):
            del table[key]
        else:
            table[key] = draw(scalars)
    return side


def model(base: Any, ours: Any, theirs: Any) -> Any:
    """What a merge by keys means; raises where it is contested."""
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        raise ContestedError
    was = base if isinstance(base, dict) else {}
    merged = {}
    for key in {**ours, **theirs}:
        value = model(was.get(key, MISSING), ours.get(key, MISSING), theirs.get(key, MISSING))
        if value is not MISSING:
            merged[key] = value
    return merged


def as_toml(document: dict[str, dict[str, Any]]) -> str:
    lines = ["# a file\n"]
    for name, table in document.items():
        lines.append(f"\n# about {name}\n[{name}]\n")
        for key, value in table.items():
            text = str(value).lower() if isinstance(value, (bool, int)) else f'"{value}"'
            lines.append(f"{key} = {text} # why {key}\n")
    return "".join(lines)


def as_yaml(document: dict[str, dict[str, Any]]) -> str:
    lines = ["# a file\n"]
    for name, table in document.items():
        lines.append(f"\n# about {name}\n{name}:{'' if table else ' {}'}\n")
        for key, value in table.items():
            text = str(value).lower() if isinstance(value, (bool, int)) else f'"{value}"'
            lines.append(f"   {key}: {text} # why {key}\n")
    return "".join(lines)


@pytest.mark.parametrize(
    ("reader", "write", "read"),
    [(TomlFormat(), as_toml, tomllib.loads), (YamlFormat(), as_yaml, lambda text: yaml.safe_load(text) or {})],
    ids=["toml", "yaml"],
)
@given(data=st.data())
def test_a_clean_merge_says_what_a_merge_by_keys_says(
    reader: Format, write: Any, read: Any, data: st.DataObject
) -> None:
    base = data.draw(documents)
    ours, theirs = data.draw(edited(base)), data.draw(edited(base))
    budget = Budget(10)
    texts = [write(side) for side in (base, ours, theirs)]
    sides = [reader.parse(text, budget) for text in texts]
    assume(len({side.kind for side in sides}) == 1)
    merged, contests = merge_documents(*sides, lockstep=Lockstep(*texts), reader=reader, budget=budget)
    text = render(merged)
    assert reader.is_valid(text, budget)
    if contests:
        return
    try:
        expected = model(base, ours, theirs)
    except ContestedError:
        return  # the version rule settled it, or it is the same for one side but for its quotes
    assert read(text) == expected
    for name, table in expected.items():
        assert text.count(f"# about {name}\n") == 1
        assert all(f"# why {key}" in text for key in table)
