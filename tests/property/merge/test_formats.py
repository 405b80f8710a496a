"""What every registered format promises: it gives back what it read, and no bytes make it fail otherwise."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.merge import MergeOutcome, merge
from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.document import render
from contextbase.merge.formats import FORMATS
from contextbase.merge.ports import Format, Unstructured
from contextbase.merge.sniff import FileType

SEEDS = Path(__file__).parent / "seeds"
NAMES = {
    FileType.JSON: "a.json",
    FileType.JSON_LINES: "a.jsonl",
    FileType.NOTEBOOK: "a.ipynb",
    FileType.YAML: "a.yaml",
    FileType.TOML: "a.toml",
    FileType.MARKDOWN: "a.md",
    FileType.CHANGELOG: "CHANGELOG.md",
    FileType.INI: "a.ini",
    FileType.TABLE: "a.csv",
    FileType.LINE_SET: "requirements.txt",
}
REGISTERED = [(kind, reader) for kind, readers in FORMATS.items() for reader in readers]
formats = pytest.mark.parametrize(("kind", "reader"), REGISTERED, ids=lambda value: getattr(value, "name", value))


def seeds(kind: FileType) -> list[str]:
    """Files kept because they are typical, or because something once failed on them."""
    found = sorted(SEEDS.glob(f"{kind}-*"))
    assert found, f"there is no seed for {kind}"
    return [file.read_bytes().decode() for file in found]


@st.composite
def mutated(draw: st.DrawFn, seed: str) -> str:
    """A seed with a few stretches cut, doubled or replaced, as a text that ends with a newline."""
    text = seed
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(
            st.one_of(
                st.just(text[start:end] * 2),
                st.just(""),
                st.text(max_size=4),
                st.sampled_from(list('{}[],:"\\#|-\n\t &*!')),
            )
        )
        text = text[:start] + piece + text[end:]
    text = text.replace("\r", "")
    return text if text.endswith("\n") or not text else text + "\n"


@formats
def test_parsing_a_seed_and_rendering_it_gives_it_back(kind: FileType, reader: Format) -> None:
    readable = 0
    for seed in seeds(kind):
        try:
            assert render(reader.parse(seed, Budget(10))) == seed
            readable += 1
        except Unstructured:
            continue
    assert readable, "none of its seeds could be read"


@formats
@given(data=st.data())
def test_whatever_is_read_is_given_back_and_nothing_else_is_raised(
    kind: FileType, reader: Format, data: st.DataObject
) -> None:
    text = data.draw(st.sampled_from(seeds(kind)).flatmap(mutated))
    reader.is_valid(text, Budget(10))
    try:
        document = reader.parse(text, Budget(10))
    except Unstructured:
        return
    assert render(document) == text


@formats
@given(data=st.data())
def test_mutations_of_a_seed_always_merge_to_a_result_or_a_conflict(
    kind: FileType, reader: Format, data: st.DataObject
) -> None:
    seed = data.draw(st.sampled_from(seeds(kind)))
    ours, theirs = (data.draw(mutated(seed)).encode() for _ in range(2))
    merged = merge(seed.encode(), ours, theirs, path=NAMES[kind])
    if merged.outcome is MergeOutcome.CONFLICT:
        assert merged.partial is not None
        return
    assert merged.content is not None
    if all(reader.is_valid(side.decode(), Budget(10)) for side in (seed.encode(), ours, theirs)):
        assert reader.is_valid(merged.content.decode(), Budget(10)) or merged.strategy == "trivial"


@formats
def test_a_spent_budget_stops_the_parser(kind: FileType, reader: Format) -> None:
    text = max(seeds(kind), key=len) * 2000
    with pytest.raises((BudgetSpent, Unstructured)):
        reader.parse(text, Budget(0))
