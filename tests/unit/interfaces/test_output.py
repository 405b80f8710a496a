"""What commands print."""

import io

import pytest
from rich.console import Console

from contextbase.interfaces.cli import output


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=stream, width=80))
    return stream


def test_lines_and_tables_command_nothing_of_the_terminal(printed: io.StringIO) -> None:
    output.print_line("left out  a\x1b[2Jb")
    output.print_table(["tag"], [["v1\x1b]0;title\x07"]], empty="")
    assert "\x1b" not in printed.getvalue()
    assert "left out  a\\x1b[2Jb\n" in printed.getvalue()


def test_a_name_in_a_line_begins_no_other_line(printed: io.StringIO) -> None:
    output.print_line("left out  a\nwrite   b\tc: It is a pipe.")
    assert printed.getvalue() == "left out  a\\x0awrite   b\\x09c: It is a pipe.\n"
