"""Finding paths by the words somebody remembers."""

import pytest

from contextbase.errors import InvalidInput
from contextbase.ids import TreePath
from contextbase.search.model import NameQuery
from contextbase.search.name_search import NameRanking
from contextbase.search.path_filter import PathFilter

PATHS = [
    *("README.md", "docs/readme.txt", "docs/guide/install.md", "src/model_form_set.py", "src/models/__init__.py"),
    *("src/forms.py", "tests/test_forms.py", "tests/deep/er/forms/data.json", "日本/メモ.md", "Makefile"),
]


def found(words: str = "", *globs: str, below: str | None = None) -> list[str]:
    query = NameQuery(words=words, files=PathFilter.parse(None if below is None else TreePath(below), globs))
    return [path for _, _, path in NameRanking(query).best([TreePath(p) for p in PATHS], after=None, count=99)]


def test_names_come_before_folders_and_short_before_long() -> None:
    assert found("forms")[:3] == ["src/forms.py", "tests/test_forms.py", "tests/deep/er/forms/data.json"]


def test_every_word_must_be_there_in_whatever_case() -> None:
    assert found("READ docs") == ["docs/readme.txt"]
    assert found("メモ") == ["日本/メモ.md"]
    assert found("nothing like it") == []


def test_letters_of_a_name_in_order_come_last() -> None:
    assert found("mdlfrmst") == ["src/model_form_set.py"]
    assert found("mf") == ["Makefile", "src/model_form_set.py"]
    assert found("forms")[3:] == ["src/model_form_set.py"]
    assert found("*") == []


def test_without_words_it_is_every_path_in_order() -> None:
    assert found() == sorted(PATHS)


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (("*.md",), ["README.md", "docs/guide/install.md", "日本/メモ.md"]),
        (("docs/*.md",), []),
        (("docs/**/*.md",), ["docs/guide/install.md"]),
        (("/*.md",), ["README.md"]),
        (("docs/",), ["docs/guide/install.md", "docs/readme.txt"]),
        (("forms/",), ["tests/deep/er/forms/data.json"]),
        (("*.py", "!test_*"), ["src/forms.py", "src/model_form_set.py", "src/models/__init__.py"]),
        (("!src/**", "!*.md", "!tests/"), ["Makefile", "docs/readme.txt"]),
    ],
)
def test_patterns_of_paths(globs: tuple[str, ...], expected: list[str]) -> None:
    assert found("", *globs) == expected


def test_below_a_folder_or_at_a_file() -> None:
    assert found(below="docs") == ["docs/guide/install.md", "docs/readme.txt"]
    assert found(below="Makefile") == ["Makefile"]
    assert found(below="Make") == []


@pytest.mark.parametrize("globs", [["../x"], ["a\0"], ["*"] * 33, ["!"]])
def test_patterns_that_are_none_are_refused(globs: list[str]) -> None:
    with pytest.raises(InvalidInput):
        PathFilter.parse(None, globs)


@pytest.mark.parametrize("words", ["x" * 201, "a\nb"])
def test_words_that_no_name_has_are_refused(words: str) -> None:
    with pytest.raises(InvalidInput):
        NameQuery(words=words)
