"""Long output for people: page by page on a terminal, plain into a pipe."""

from rich.text import Text

from contextbase.interfaces.cli.output import console

__all__ = ["print_paged"]


def print_paged(text: Text) -> None:
    if console.is_terminal and text.plain.count("\n") >= console.height:
        with console.pager(styles=True):
            console.print(text, soft_wrap=True)
    else:
        console.print(text, soft_wrap=True)
