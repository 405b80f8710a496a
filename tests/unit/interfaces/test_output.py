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


def test_characters_that_reorder_text_are_spelled_out(printed: io.StringIO) -> None:
    output.print_line("a\u202etxt.exe")
    output.print_table(["path"], [["a\u2066b\u2069"]], empty="")
    assert [line.rstrip() for line in printed.getvalue().splitlines()] == [
        "a\\u202etxt.exe", "path", "a\\u2066b\\u2069"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("fix the plan", "fix the plan"),
        ("fix the plan\n", "fix the plan"),
        ("fix\n9  2026-01-01 00:00:00  owner  innocent", "fix …"),
        ("fix\r9  owner", "fix\\x0d9  owner"),
        ("fix\u20289  owner", "fix\\u20289  owner"),
        ("", ""),
    ],
)
def test_a_message_takes_one_line_of_a_list(message: str, shown: str) -> None:
    assert output.subject(message) == shown
