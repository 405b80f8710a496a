"""What a commit request refuses by itself."""

import pytest

from contextbase.errors import InvalidInput
from contextbase.gate.model import ChangeAction, CommitRequest, RequestedChange
from contextbase.ids import ProjectId, Seq, TreePath, new_uuid


class Compared(TreePath):
    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return super().__eq__(other)

    __hash__ = TreePath.__hash__


def test_a_place_named_twice_is_found_among_very_many_without_comparing_them_all() -> None:
    paths = [Compared(f"{number}.txt") for number in range(2_000)]
    changes = [
        RequestedChange(action=ChangeAction.DELETE, path=path, base=Seq(0)) for path in (*paths, Compared("1999.txt"))
    ]
    with pytest.raises(InvalidInput, match=r"1999\.txt"):
        CommitRequest(project_id=ProjectId(new_uuid()), changes=tuple(changes))
    assert Compared.times < 100  # all with all would be millions, and hold up everybody meanwhile
