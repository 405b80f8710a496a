"""`contextbase doctor`: what this machine can do, and how to get what is missing."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from contextbase.errors import ContextbaseError
from contextbase.interfaces.cli.connection import Data, existing_settings
from contextbase.interfaces.cli.machine_text import machine_states
from contextbase.interfaces.cli.output import Json, errors_shown, print_hanging, print_json

if TYPE_CHECKING:
    from contextbase.machine import Finding

__all__ = ["doctor"]

_MARKS = {"yes": "[green]✓[/]", "no": "[yellow]-[/]", "broken": "[red]✗[/]"}


@errors_shown
def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check what this machine supports (database, blobs, workspaces, sandboxes), and how to get the rest."""
    from contextbase.bootstrap import (
        known_machines,
        problems_outside,
        sandbox_kind,
        session_alerts,
    )  # all of the server: slow to import
    from contextbase.machine import Finding, examine

    settings = existing_settings(data)
    try:
        sandbox = Finding(name="sandbox", answer="yes", detail=asyncio.run(sandbox_kind(settings)))
    except ContextbaseError as error:
        advice = "Install bubblewrap or Docker. Everything else works without."
        sandbox = Finding(name="sandbox", answer="no", detail=error.message, advice=advice)
    findings = [
        *examine(settings, problems=asyncio.run(problems_outside(settings)), sandbox=sandbox),
        _machines(asyncio.run(known_machines(settings))),
    ]
    alerts = asyncio.run(session_alerts(settings))
    if alerts is not None:
        findings.append(_sessions(alerts))
    if as_json:
        print_json([asdict(finding) for finding in findings])
        return
    for finding in findings:
        print_hanging(Text.from_markup(f"{_MARKS[finding.answer]} [bold]{finding.name:14}[/] "), finding.detail)
        if finding.advice:
            print_hanging(Text(" " * 17), finding.advice, style="dim")


def _sessions(alerts: Mapping[str, str]) -> "Finding":
    """`alerts`: by session."""
    from contextbase.machine import Finding

    if not alerts:
        return Finding(name="sessions", answer="yes", detail="nothing keeps their files from being stored")
    session, alert = next(iter(alerts.items()))
    others = f" So it is with {len(alerts) - 1} more." if len(alerts) > 1 else ""
    advice = f"Mend what it says; then the files are stored by themselves. More: contextbase session show {session}"
    return Finding(name="sessions", answer="broken", detail=f"{session}: {alert}{others}", advice=advice)


def _machines(states: Mapping[str, str] | None) -> "Finding":
    """`states`: by name; None: nobody but the server of this folder knows them."""
    from contextbase.machine import Finding

    if states is None:
        return Finding(name="machines", answer="yes", detail="this one alone, while its server runs")
    lost = [name for name, state in states.items() if state == "lost"]
    return Finding(
        name="machines",
        answer="no" if lost or not states else "yes",
        detail=machine_states(states),
        advice=f"Start {lost[0]} again, or give it up: contextbase machines forget {lost[0]}" if lost else "",
    )
