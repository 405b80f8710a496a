"""Names that leave other files alone."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.errors import InvalidPath
from contextbase.files.free_names import file_name, names_for, numbered
from contextbase.ids import MAX_PART_BYTES, TreePath


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("data.csv", "data (1).csv"),
        ("data (1).csv", "data (1) (1).csv"),
        ("archive.tar.gz", "archive (1).tar.gz"),
        ("ARCHIVE.TAR.GZ", "ARCHIVE (1).TAR.GZ"),
        (".tar.gz", ".tar (1).gz"),
        ("Makefile", "Makefile (1)"),
        (".bashrc", ".bashrc (1)"),
        ("v1.2.txt", "v1.2 (1).txt"),
        ("数据.csv", "数据 (1).csv"),
    ],
)
def test_the_number_stands_before_the_suffix(name: str, second: str) -> None:
    assert list(islice(names_for(name), 2)) == [name, second]


@given(
    name=st.text(st.characters(exclude_characters="/\\", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=300),
    number=st.integers(1, 10**6),
)
def test_a_numbered_name_fits_into_a_tree_if_the_name_does(name: str, number: int) -> None:
    try:
        TreePath(name)
    except InvalidPath:
        return
    made = numbered(name, number)
    assert len(TreePath(made).encode()) <= MAX_PART_BYTES
    assert f" ({number})" in made


def test_the_names_of_a_long_name_differ() -> None:
    for name in ("x" * 255, "字" * 85, "a." + "s" * 253):
        names = list(islice(names_for(name), 2000))
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "/a", "a\\b", "..\\a", "a\x00b", "x" * 256, ".contextbase"])
def test_an_upload_names_one_file(text: str) -> None:
    with pytest.raises(InvalidPath):
        file_name(text)
