"""`contextbase doctor`: what this machine can do, and how to get what is missing."""

import asyncio
from dataclasses import asdict

from rich.text import Text

from contextbase.interfaces.cli.connection import Data, existing_settings
from contextbase.interfaces.cli.output import Json, errors_shown, print_hanging, print_json

__all__ = ["doctor"]

_MARKS = {"yes": "[green]✓[/]", "no": "[yellow]-[/]", "broken": "[red]✗[/]"}


@errors_shown
def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check what this machine supports (database, blobs, workspaces, sandboxes), and how to get the rest."""
    from contextbase.bootstrap import findings_of  # all of the server: slow to import

    findings = asyncio.run(findings_of(existing_settings(data)))
    if as_json:
        print_json([asdict(finding) for finding in findings])
        return
    for finding in findings:
        print_hanging(Text.from_markup(f"{_MARKS[finding.answer]} [bold]{finding.name:14}[/] "), finding.detail)
        if finding.advice:
            print_hanging(Text(" " * 17), finding.advice, style="dim")
