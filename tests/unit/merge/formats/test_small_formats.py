"""INI and its kin, tables, and sets of lines."""

import pytest

from contextbase.merge import MergeOutcome, PlaceKind, merge
from contextbase.merge.budget import Budget
from contextbase.merge.formats.table import TableFormat


@pytest.mark.parametrize(
    ("path", "base", "ours", "theirs", "expected"),
    [
        (
            "a.ini",
            "[s]\na = 1\nb = 1\n",
            "[s]\na = 2\nb = 1\n",
            "[s]\na = 1\nb = 2\nc = 3\n",
            "[s]\na = 2\nb = 2\nc = 3\n",
        ),
        (".env", "A=1\nB=1\n", "A=1\nB=2\nC=1\n", "A=2\nB=1\n", "A=2\nB=2\nC=1\n"),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n    a\n    b\n",
            "[options]\ninstall_requires =\n    a\n    b\n    c\n",
            "[options]\ninstall_requires =\n    a\n    b\n    d\n",
            "[options]\ninstall_requires =\n    a\n    b\n    c\n    d\n",
        ),
        (
            "a.csv",
            "id,x,y\n1,a,b\n2,c,d\n",
            "id,x,y\n1,A,b\n2,c,d\n",
            "id,x,y\n1,a,B\n2,c,d\n3,e,f\n",
            "id,x,y\n1,A,B\n2,c,d\n3,e,f\n",
        ),
        ("a.tsv", "k\tv\na\t1\nb\t2\n", "k\tv\na\t1\nb\t3\n", "k\tv\na\t2\nb\t2\n", "k\tv\na\t2\nb\t3\n"),
        (
            "requirements.txt",
            "b==1.0\nc==1.0\n",
            "b==1.2\nc==1.0\n",
            "a==1\nb==1.1\nc==2.0\n",
            "a==1\nb==1.2\nc==2.0\n",
        ),
        (".gitignore", "*.pyc\n", "*.pyc\n/dist\n", "*.pyc\n/build\n/dist\n", "*.pyc\n/build\n/dist\n"),
    ],
    ids=["ini", "env", "list in cfg", "csv", "tsv", "requirements", "gitignore"],
)
def test_neighbouring_changes_merge_by_key(path: str, base: str, ours: str, theirs: str, expected: str) -> None:
    merged = merge(base.encode(), ours.encode(), theirs.encode(), path=path)
    assert merged.outcome is MergeOutcome.MERGED, merged.conflicts
    assert merged.content == expected.encode()


def test_a_cell_both_sides_changed_is_contested_by_row_and_column() -> None:
    merged = merge(b"id,x\n1,a\n2,b\n", b"id,x\n1,b\n2,b\n", b"id,x\n1,c\n2,b\n", path="a.csv")
    (conflict,) = merged.conflicts
    assert (conflict.place.kind, conflict.place.at) == (PlaceKind.ROW, "1 x")
    assert (conflict.base, conflict.ours, conflict.theirs) == (b"a", b"b", b"c")


def test_a_row_without_the_column_the_other_side_added_is_not_put_into_the_table() -> None:
    base = "id,x\n" + "".join(f"{n},a\n" for n in range(9))
    wider = base.replace(",a\n", ",a,\n").replace("id,x\n", "id,x,y\n")
    merged = merge(base.encode(), wider.encode(), (base + "9,a\n").encode(), path="a.csv")
    assert merged.outcome is MergeOutcome.CONFLICT


def test_a_newline_inside_quotes_does_not_end_a_row() -> None:
    assert TableFormat().is_valid('id,x\n1,"a\nb"\n', Budget(1))
    assert not TableFormat().is_valid('id,x\n1,"a\nb\n', Budget(1))
    assert not TableFormat().is_valid("id,x\n1\n", Budget(1))


def test_a_key_that_stands_twice_is_left_to_the_line_merge() -> None:
    merged = merge(b"[s]\na=1\na=2\n", b"[s]\na=1\na=3\n", b"[s]\na=1\na=4\n", path="a.ini")
    assert (merged.outcome, merged.strategy) == (MergeOutcome.CONFLICT, "lines")
    assert merged.notes
