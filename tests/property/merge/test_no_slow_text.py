"""Texts that make a careless pattern try every split of a long run; a hang ends at the suite's timeout."""

import pytest

from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.document import Group, items_of, render
from contextbase.merge.formats import FORMATS
from contextbase.merge.ports import Format, Unstructured

LONG = 100_000
READERS = [reader for readers in FORMATS.values() for reader in readers]
BEGINNINGS = ["", "a", "a:", "a: b", "- ", "# a", "| a", "a = ", "[a", "a #", '"a', "'a", "a==", "<!--", "---\na"]
RUNS = [" ", "\t", "a ", "# ", "|", "-", "[", '"', "'", ": ", "1.", "=", "\n"]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@pytest.mark.parametrize("run", RUNS)
def test_a_long_run_of_anything_is_read_in_one_pass(reader: Format, run: str) -> None:
    for beginning in BEGINNINGS:
        text = f"{beginning}{run * (LONG // len(run))}x\n"
        try:
            reader.is_valid(text, Budget(2))
            document = reader.parse(text, Budget(2))
            unfold_all(document, depth=3)
        except (Unstructured, BudgetSpent):
            continue
        assert render(document) == text


def unfold_all(group: Group, depth: int) -> None:
    for item in items_of(group):
        inner = item.body.unfold() if hasattr(item.body, "unfold") else item.body
        if isinstance(inner, Group) and depth:
            unfold_all(inner, depth - 1)
