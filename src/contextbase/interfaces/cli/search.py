"""`contextbase find` and `contextbase grep`"""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import At, Data, Project, connect, named
from contextbase.interfaces.cli.options import Workspace
from contextbase.interfaces.cli.output import (
    Json,
    console,
    error_console,
    errors_shown,
    on_one_line,
    print_json,
    visible,
)
from contextbase.sdk import Client
from contextbase.wire.search import ContentMatchPage, FileMatchView, LineMatchView, NameMatchPage

__all__ = ["find", "grep"]

_PAGE: Final = 500
_WILD: Final = frozenset("*?")

Globs = Annotated[
    list[str] | None,
    typer.Option(
        "-g",
        "--glob",
        metavar="PATTERN",
        help="Only files that match: *.py, docs/*.md, docs/; !PATTERN leaves files out. Repeat it for several.",
        show_default=False,
    ),
]
Below = Annotated[
    str | None,
    typer.Argument(
        metavar="[PATH]", help="A file, or a folder and all in it.", show_default=False, autocompletion=complete_path
    ),
]


@errors_shown
def grep(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression (RE2).", show_default=False)],
    path: Below = None,
    fixed: Annotated[bool, typer.Option("-F", "--fixed-strings", help="PATTERN is plain text.")] = False,
    ignore_case: Annotated[bool, typer.Option("-i", "--ignore-case")] = False,
    whole_word: Annotated[bool, typer.Option("-w", "--word-regexp", help="Match whole words only.")] = False,
    context: Annotated[
        int,
        typer.Option("-C", "--context", metavar="LINES", help="Show this many lines around.", min=0, max=20),
    ] = 0,
    names_only: Annotated[bool, typer.Option("-l", "--files-with-matches", help="Print paths only.")] = False,
    per_file: Annotated[
        int | None, typer.Option("--max-count", metavar="N", help="Show at most N matches of each file.", min=1)
    ] = None,
    globs: Globs = None,
    at: At = None,
    workspace: Workspace = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Search the files of a project, as grep does. Exits with 1 if nothing matches."""
    wanted: dict[str, Any] = {
        "regex": not fixed,
        "ignore_case": ignore_case,
        "whole_word": whole_word,
        "path": path,
        "globs": globs or (),
        "context": 0 if names_only else context,
        "per_file": 1 if names_only else per_file,
        "at": at or "",
        "workspace": workspace,
    }
    with connect(data) as client:
        pages = _content_pages(client, named(project), pattern, wanted)
        if as_json:
            whole = _joined(list(pages))
            print_json(whole)
            has_found = bool(whole.files)
        else:
            has_found = _print_pages(pages, names_only=names_only, with_context=context > 0)
    if not has_found:
        raise typer.Exit(1)


@errors_shown
def find(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Words of the path, letters of the name in order, or a pattern such as '*.py'.",
            show_default=False,
        ),
    ] = None,
    path: Below = None,
    globs: Globs = None,
    at: At = None,
    workspace: Workspace = None,
    limit: Annotated[int | None, typer.Option("-n", "--limit", metavar="N", help="Show at most N.", min=1)] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Find files of a project by name, the best match first. Exits with 1 if there is none."""
    patterns = [*(globs or ()), *([name] if name and _WILD & set(name) else [])]
    words = "" if name is None or (patterns and name in patterns) else name
    cursor, found = None, 0
    pages: list[NameMatchPage] = []
    with connect(data) as client:
        while limit is None or found < limit:
            page = client.search.find(
                named(project),
                words,
                path=path,
                globs=patterns,
                at=at or "",
                workspace=workspace,
                cursor=cursor,
                limit=_PAGE if limit is None else min(_PAGE, limit - found),
            )
            found += len(page.paths)
            pages.append(page)
            if not as_json:
                for one in page.paths:
                    console.print(Text(on_one_line(one)), soft_wrap=True)
            cursor = page.cursor
            if cursor is None:
                break
    if as_json:
        print_json(pages[-1].model_copy(update={"paths": [one for page in pages for one in page.paths]}))
    if not found:
        raise typer.Exit(1)


def _content_pages(client: Client, project: str, pattern: str, wanted: dict[str, Any]) -> Iterator[ContentMatchPage]:
    cursor = None
    while True:
        page = client.search.grep(project, pattern, **wanted, cursor=cursor, limit=_PAGE)
        yield page
        cursor = page.cursor
        if cursor is None:
            return


def _joined(pages: list[ContentMatchPage]) -> ContentMatchPage:
    files: dict[str, FileMatchView] = {}
    for file in (file for page in pages for file in page.files):
        known = files.setdefault(file.path, FileMatchView(path=file.path, lines=[]))
        known.lines += file.lines
    skipped = [skipped for page in pages for skipped in page.skipped]
    return pages[-1].model_copy(update={"files": list(files.values()), "skipped": skipped})


def _print_pages(pages: Iterator[ContentMatchPage], *, names_only: bool, with_context: bool) -> bool:
    """Like ripgrep on a terminal, like grep in a pipe."""
    last: tuple[str, int] | None = None
    for page in pages:
        for file in page.files:
            if names_only:
                console.print(Text(on_one_line(file.path)), soft_wrap=True)
                last = (file.path, 0)
                continue
            for line in file.lines:
                is_same = last is not None and last[0] == file.path
                if console.is_terminal and not is_same:
                    console.print(Text.assemble("\n" if last is not None else "", (on_one_line(file.path), "magenta")))
                elif with_context and last is not None and last != (file.path, line.number - 1):
                    console.print(Text("--", style="cyan"))
                console.print(_line(file.path, line), soft_wrap=True)
                last = (file.path, line.number)
        for skipped in page.skipped:
            reason = "it is too large" if skipped.reason == "too_large" else "it cannot be read"
            error_console.print(Text(f"{on_one_line(skipped.path)} was not searched: {reason}."), soft_wrap=True)
    return last is not None


def _line(path: str, line: LineMatchView) -> Text:
    mark = "-" if line.ranges is None else ":"
    head = Text("" if console.is_terminal else f"{on_one_line(path)}{mark}")
    head.append(f"{line.number}", style="green").append(mark)
    at = 0
    for start, end in line.ranges or ():
        head.append(visible(line.text[at:start])).append(visible(line.text[start:end]), style="bold red")
        at = end
    return head.append(visible(line.text[at:])).append(" …" if line.is_cut else "", style="dim")
