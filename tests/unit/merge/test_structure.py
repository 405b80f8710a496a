import pytest

from contextbase.merge import merge, render_markers
from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.document import Folded
from contextbase.merge.formats.json import JsonFormat
from contextbase.merge.ports import InvalidResult
from contextbase.merge.structure import merge_structured
from contextbase.merge.texts import Texts
from contextbase.merge.words import suggest


class PickyFormat(JsonFormat):
    """JSON of which one text is not valid."""

    def __init__(self, refused: str) -> None:
        super().__init__(with_comments=False)
        self._refused = refused

    def is_valid(self, text: str, budget: Budget) -> bool:
        return text.strip() != self._refused and super().is_valid(text, budget)


@pytest.mark.parametrize("refused", ['{"a": 2, "b": 2}', '{"a": 3, "b": 2}'])
def test_a_result_that_is_not_valid_with_either_side_at_the_conflicts_is_refused(refused: str) -> None:
    texts = Texts.read(b'{"a": 1, "b": 1}', b'{"a": 2, "b": 2}', b'{"a": 3, "b": 1}')
    with pytest.raises(InvalidResult):
        merge_structured(texts, PickyFormat(refused), Budget(10))
    assert merge_structured(texts, PickyFormat(""), Budget(10)).conflicts


def test_markers_around_a_part_of_a_line_take_the_whole_line() -> None:
    merged = merge(b'{"a": 1, "b": 1}\n', b'{"a": 2, "b": 1}\n', b'{"a": 3, "b": 4}\n', path="a.json")
    assert render_markers(merged) == (
        b'<<<<<<< ours\n{"a": 2, "b": 4}\n||||||| base\n{"a": 1, "b": 4}\n=======\n{"a": 3, "b": 4}\n>>>>>>> theirs\n'
    )


def test_taking_a_large_object_apart_stops_when_time_is_up() -> None:
    text = "{" + ", ".join(f'"k{number}": {number}' for number in range(500)) + "}\n"
    (item,) = JsonFormat(with_comments=False).parse(text, Budget(0)).items
    assert isinstance(item.body, Folded)
    with pytest.raises(BudgetSpent):
        item.body.unfold()


def test_two_words_at_one_spot_are_not_suggested_side_by_side() -> None:
    assert suggest(b"a b", b"a x b", b"a y b") is None
    assert suggest(b"a b c", b"x b c", b"a b y") == b"x b y"
    assert suggest(b"a b", b"a 1.0.2 b", b"a b") == b"a 1.0.2 b"
