"""`contextbase find` and `contextbase grep`."""

from pathlib import Path

import pytest
from tests.support.cli import Cli

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def filled(cb: Cli, tmp_path: Path) -> Cli:
    files = {"docs/note.md": "# Note\nA needle\n\nand more\n", "src/main.py": "needle = 1\n", "src/util.py": "x = 2\n"}
    for path, text in files.items():
        file = tmp_path / "tree" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert cb("import", str(tmp_path / "tree")).code == 0
    return cb


def test_grep_prints_what_grep_prints_in_a_pipe(filled: Cli) -> None:
    assert filled("grep", "need.e").stdout == "docs/note.md:2:A needle\nsrc/main.py:1:needle = 1\n"
    assert filled("grep", "-l", "needle").stdout == "docs/note.md\nsrc/main.py\n"
    assert (
        filled("grep", "-C", "1", "needle", "docs").stdout
        == "docs/note.md-1-# Note\ndocs/note.md:2:A needle\ndocs/note.md-3-\n"
    )
    assert filled("grep", "-i", "NEEDLE", "-g", "*.py").stdout == "src/main.py:1:needle = 1\n"
    assert filled("grep", "-F", "need.e").code == 1
    assert filled("grep", "-w", "need").code == 1
    refused = filled("grep", "(")
    assert (refused.code, refused.stdout) == (2, "")
    found = filled("grep", "needle", "--json").json
    assert [file["path"] for file in found["files"]] == ["docs/note.md", "src/main.py"]


def test_grep_looks_into_old_snapshots(filled: Cli) -> None:
    assert filled("rm", "src/main.py").code == 0
    assert filled("grep", "needle =").code == 1
    assert filled("grep", "--at", "head~1", "needle =").stdout == "src/main.py:1:needle = 1\n"


def test_find_takes_words_letters_and_patterns(filled: Cli) -> None:
    assert filled("find").stdout == "docs/note.md\nsrc/main.py\nsrc/util.py\n"
    assert filled("find", "note").stdout == "docs/note.md\n"
    assert filled("find", "utpy").stdout == "src/util.py\n"
    assert filled("find", "*.py").stdout == "src/main.py\nsrc/util.py\n"
    assert filled("find", "-n", "1", "-g", "*.py").stdout == "src/main.py\n"
    assert filled("find", "nothing-like-it").code == 1
    assert filled("find", "main", "--json").json["paths"] == ["src/main.py"]
