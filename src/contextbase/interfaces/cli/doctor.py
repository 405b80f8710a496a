"""`contextbase doctor`: what this machine can do, and how to get what is missing."""

import asyncio
from dataclasses import asdict

from rich.text import Text

from contextbase.errors import ContextbaseError
from contextbase.interfaces.cli.connection import Data, existing_settings
from contextbase.interfaces.cli.output import Json, errors_shown, print_hanging, print_json

__all__ = ["doctor"]

_MARKS = {"yes": "[green]✓[/]", "no": "[yellow]-[/]", "broken": "[red]✗[/]"}


@errors_shown
def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check what this machine supports (database, blobs, workspaces, sandboxes), and how to get the rest."""
    from contextbase.bootstrap import problems_outside, sandbox_kind  # with all of the server: others start without
    from contextbase.machine import Finding, examine

    settings = existing_settings(data)
    try:
        sandbox = Finding(name="sandbox", answer="yes", detail=asyncio.run(sandbox_kind(settings)))
    except ContextbaseError as error:
        advice = "Install bubblewrap or Docker. Everything else works without."
        sandbox = Finding(name="sandbox", answer="no", detail=error.message, advice=advice)
    findings = examine(settings, problems=asyncio.run(problems_outside(settings)), sandbox=sandbox)
    if as_json:
        print_json([asdict(finding) for finding in findings])
        return
    for finding in findings:
        print_hanging(Text.from_markup(f"{_MARKS[finding.answer]} [bold]{finding.name:14}[/] "), finding.detail)
        if finding.advice:
            print_hanging(Text(" " * 17), finding.advice, style="dim")
