"""The command line's first module: it decides whether all of the command line is needed."""

import sys

__all__ = ["main"]


def main() -> None:
    if sys.argv[1:2] == ["mcp"]:
        from contextbase.interfaces.mcp.start import run_if_bridge  # starts in a tenth of the time

        if run_if_bridge(sys.argv[2:]):
            return
    from contextbase.interfaces.cli.main import main as command_line

    command_line()
