"""Blame agrees with a replay that carries the labels along, and with git."""

import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextbase.compare import LineBlame, PartBlame
from contextbase.merge.budget import Budget

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines are busy at times


@st.composite
def line_histories(draw: st.DrawFn) -> list[tuple[list[int], int | None, dict[int, int]]]:
    """Versions as (lines, second parent, who wrote each line); every line ever written has a rank among all of them, so
    that any choice of a parent's lines keeps their order."""
    ranks = list(range(200))
    random.Random(draw(st.integers(0, 99))).shuffle(ranks)
    written: dict[int, int] = {}
    versions: list[tuple[list[int], int | None, dict[int, int]]] = []
    for number in range(draw(st.integers(1, 8))):
        second = draw(st.integers(0, number - 2)) if number > 2 and draw(st.booleans()) else None
        parents = [number - 1] if number else []
        parents += [] if second is None else [second]
        known = sorted({line for parent in parents for line in versions[parent][0]})
        kept = [line for line in known if draw(st.integers(0, 5))]
        fresh = [ranks.pop() for _ in range(draw(st.integers(0, 5)))]
        written |= dict.fromkeys(fresh, number)
        versions.append((sorted([*kept, *fresh]), second, written))
    return versions


@patient
@given(line_histories(), st.booleans())
def test_each_line_comes_from_who_wrote_it_whichever_parent_it_came_through(
    history: list[tuple[list[int], int | None, dict[int, int]]], ends: bool
) -> None:
    blames: list[LineBlame[int]] = []
    for number, (lines, second, written) in enumerate(history):
        content = "".join(f"line {line}\n" for line in lines).encode() + (b"" if ends else b"end\n")
        if not number:
            blames.append(LineBlame.start(content, 0))
        else:
            other = None if second is None else blames[second]
            blames.append(LineBlame.resume(blames[-1].content, blames[-1].runs()).then(content, number, other=other))
        expected = [written[line] for line in lines] + ([] if ends else [0])
        assert list(blames[-1].labels) == expected


@patient
@given(
    st.lists(st.lists(st.sampled_from([b"{\n", b"}\n", b"\n", b"a\n", b"b\n"]), max_size=12), min_size=1, max_size=8)
)
def test_a_line_is_in_the_version_it_is_said_to_come_from_even_where_lines_are_repeated(
    history: list[list[bytes]],
) -> None:
    blame = LineBlame.start(b"".join(history[0]), 0)
    for number, lines in enumerate(history[1:], start=1):
        before = blame
        blame = blame.then(b"".join(lines), number)
        kept = [label for label in blame.labels if label != number]
        assert all(line in history[label] for line, label in zip(lines, blame.labels, strict=True))
        assert is_subsequence(kept, list(before.labels))


def is_subsequence(shorter: list[int], longer: list[int]) -> bool:
    remaining = iter(longer)
    return all(element in remaining for element in shorter)


@pytest.mark.parametrize("seed", range(3))
def test_blame_is_that_of_git(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = [f"line {number}\n" for number in range(200)]
    history = []
    for number in range(40):
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(lines))
            lines[at : at + chance.randrange(3)] = [f"{number} {chance.random()}\n" for _ in range(chance.randrange(3))]
        history.append("".join(lines).encode())
    blame = LineBlame.start(history[0], 0)
    for number, content in enumerate(history[1:], start=1):
        blame = blame.then(content, number)
    assert list(blame.labels) == git_blame(history, tmp_path)


def git_blame(history: list[bytes], folder: Path) -> list[int]:
    """The number of the version that git says each line of the last one comes from."""
    commits = [
        b"commit refs/heads/main\ncommitter a <a> %d +0000\ndata 0\nM 100644 inline f\ndata %d\n%s\n"
        % (1_000_000_000 + number, len(content), content)
        for number, content in enumerate(history)
    ]
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=b"".join(commits), check=True)
    blame = ["git", "blame", "--line-porcelain", "main", "--", "f"]
    shown = subprocess.run(blame, cwd=folder, capture_output=True, check=True).stdout
    return [int(time) - 1_000_000_000 for time in re.findall(rb"^committer-time (\d+)$", shown, re.MULTILINE)]


scalars = st.sampled_from([0, 1, True, "x", "y", ""])
elements = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("pqrs"), "v": scalars}),
    max_size=4,
    unique_by=lambda each: str(each["id"]),
)
objects = st.recursive(
    st.dictionaries(st.sampled_from("abc"), scalars | elements, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def scalars_of(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every scalar by where it is, elements of lists by their id."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalars_of((*path, key), inner)
    elif isinstance(value, list):
        for element in value:
            yield from scalars_of((*path, element["id"]), element)
    else:
        yield path, repr(value)


def by_identity(document: Any, pointer: str) -> tuple[str, ...]:
    path: tuple[str, ...] = ()
    for step in pointer.split("/")[1:]:
        if isinstance(document, list):
            document = document[int(step)]
            path = (*path, document["id"])
        else:
            document = document[step]
            path = (*path, step)
    return path


@patient
@given(st.lists(st.tuples(objects, st.booleans()), min_size=1, max_size=6), st.sampled_from(["a.json", "a.yaml"]))
def test_each_value_comes_from_the_version_that_gave_it(history: list[tuple[Any, bool]], path: str) -> None:
    """With a second parent, the one before last, for some versions."""
    blames: list[PartBlame[int]] = []
    model: list[dict[tuple[str, ...], tuple[Any, int]]] = []
    for number, (document, has_second) in enumerate(history):
        content = (json.dumps(document) if path == "a.json" else yaml.safe_dump(document)).encode()
        second = number - 2 if has_second and number > 1 else None
        known: dict[tuple[str, ...], tuple[Any, int]] = {}
        for place, value in scalars_of((), document):
            parents = [model[parent].get(place) for parent in ([] if not number else [number - 1])]
            parents += [] if second is None else [model[second].get(place)]
            known[place] = next((found for found in parents if found and found[0] == value), (value, number))
        model.append(known)
        other = None if second is None else blames[second]
        if not number:
            blames.append(PartBlame.start(content, 0, path=path, budget=Budget(10)))
        else:
            blames.append(blames[-1].then(content, number, other=other))
        found = {by_identity(document, part.pointer): part.label for part in blames[-1].parts()}
        assert found == {place: label for place, (_, label) in known.items()}


cells = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from("abcd"),
            "cell_type": st.just("code"),
            "source": st.sampled_from(["x", "y"]),
            "outputs": st.lists(scalars),
        }
    ),
    max_size=4,
    unique_by=lambda cell: str(cell["id"]),
)


@patient
@given(st.lists(cells, min_size=1, max_size=6))
def test_each_cell_comes_from_the_version_that_last_changed_its_source(history: list[list[Any]]) -> None:
    labels: dict[str, tuple[str, int]] = {}
    blame: PartBlame[int] | None = None
    for number, notebook in enumerate(history):
        content = json.dumps({"cells": notebook}).encode()
        if blame is None:
            blame = PartBlame.start(content, number, path="a.ipynb", budget=Budget(10))
        else:
            blame = blame.then(content, number)
        was = labels
        labels = {}
        for cell in notebook:
            before = was.get(cell["id"])
            labels[cell["id"]] = before if before and before[0] == cell["source"] else (cell["source"], number)
        assert [part.label for part in blame.parts()] == [labels[cell["id"]][1] for cell in notebook]
