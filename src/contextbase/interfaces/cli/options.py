"""Options that several commands have. `-p` is always --project, and `-n` always says how many."""

from typing import Annotated

import typer

from contextbase.interfaces.cli.completion import complete_path

__all__ = ["By", "DryRun", "Folder", "Limit", "Message", "PathFilter", "ProjectPath", "Run", "Workspace", "Yes"]

Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="Show at most N.", min=1)]
Message = Annotated[str, typer.Option("--message", "-m", help="A message for the log.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="PRINCIPAL", help="Only by this principal, such as agent:indexer.", show_default=False
    ),
]
Run = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="Only of this run, by the name its writer gave it.", show_default=False),
]
ProjectPath = Annotated[
    str,
    typer.Argument(metavar="PATH", help="A path in the project.", show_default=False, autocompletion=complete_path),
]
PathFilter = Annotated[
    str | None,
    typer.Option(
        "--path",
        help="Only this file, or this folder and all below it.",
        show_default=False,
        autocompletion=complete_path,
    ),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "--folder",
        metavar="PATH",
        help="Only this folder of the project, as the top of the workspace. Default: all of it.",
        show_default=False,
        autocompletion=complete_path,
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        "--workspace", metavar="NAME", help="In an open workspace: `me`, agent:NAME or an id.", show_default=False
    ),
]
