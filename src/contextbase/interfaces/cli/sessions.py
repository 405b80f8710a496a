"""`contextbase session …`"""

import asyncio
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from contextbase.agent_vocabulary import QuestionStatus, ShareLevel
from contextbase.errors import InvalidInput, NotFound, Unavailable
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.completion import complete_project
from contextbase.interfaces.cli.connection import Data, address, connect
from contextbase.interfaces.cli.identifiers import find_id, short_id
from contextbase.interfaces.cli.landing_text import drawn_landing, went_in
from contextbase.interfaces.cli.options import Limit, Yes
from contextbase.interfaces.cli.output import error_console, errors_shown, told_if_interrupted
from contextbase.interfaces.cli.paging import every_page
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.interfaces.cli.question_text import drawn_question, typed_answer
from contextbase.interfaces.cli.session_text import drawn_messages, drawn_rewind, drawn_session, drawn_todos
from contextbase.interfaces.cli.terminal import LEAVE, shown_terminal, terminal_size
from contextbase.interfaces.cli.unpacking import any_name_inside, unpack
from contextbase.sdk import AsyncClient, Client
from contextbase.wire.session import LandingView, SessionView
from contextbase.wire.session_share import SessionShareList

__all__ = ["commands", "message_named", "session_named"]

commands = typer.Typer(help="Look after sessions with agents.", no_args_is_help=True)

_LIST = "contextbase session list"

Name = Annotated[str, typer.Argument(metavar="SESSION", help="Its id, or the start or end of it.", show_default=False)]
Message = Annotated[
    str,
    typer.Argument(
        metavar="MESSAGE",
        help="The number of your message that is taken back, with all after it; or the id of a message, or of a run "
        "whose answer stays.",
        show_default=False,
    ),
]
Slug = Annotated[str, typer.Argument(metavar="USER", help="The person's slug.", show_default=False)]
Files = Annotated[bool, typer.Option("--files", help="Take back the work that is not in the project, too.")]


def message_named(client: Client, session: UUID, text: str) -> str:
    """The message that a person means: by its number among theirs, which is that of its run, or by its id."""
    if not text.isdecimal():
        return text
    for page in every_page(lambda before: client.sessions.runs(session, before=before, limit=100)):
        for run in page.runs:
            if run.number == int(text):
                return f"{run.id}:prompt"
    raise NotFound(f"The session has no message {text}. `contextbase session show` lists them by their numbers.")


def session_named(client: Client, text: str) -> UUID:
    """The session that a person means."""
    listed = ((one.id, one.title) for one in chain(_all(client), _shared(client)))
    return find_id(text, what="session", listed=listed, see=_LIST)


@commands.command("list")
@command
def list_(
    client: Client,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", "-p", help="Only of this project.", show_default=False, autocompletion=complete_project
        ),
    ] = None,
    shared: Annotated[bool, typer.Option("--shared", help="Those that others share with you.")] = False,
    limit: Limit = 50,
) -> CommandResult:
    """List your sessions, newest first."""
    listed = client.session_shares.list_shared_with_me if shared else client.sessions.list
    sessions = listed(project, limit=limit).sessions
    rows = TableRows(
        columns=("SESSION", "STATE", "PROGRAM", "RUNS", "ACTIVE", "TITLE"),
        rows=(
            (
                short_id(one.id),
                f"{one.state}{', pinned' if one.pinned else ''}",
                one.provider,
                one.last_run,
                local_time(one.last_active_at),
                one.title,
            )
            for one in sessions
        ),
        empty='There are no sessions. Start one: contextbase agent "what to do", or contextbase chat',
        whole=("SESSION",),
    )
    return CommandResult(sessions, rows)


@commands.command("show")
@command
def show(client: Client, session: Name, limit: Limit = 10) -> CommandResult:
    """Show a session: its state, its worker, and its runs with what became of their changes."""
    found = client.sessions.get(session_named(client, session))
    runs = client.sessions.runs(found.id, limit=limit).runs
    return CommandResult({"session": found, "runs": runs}, drawn_session(found, runs))


@commands.command("messages")
@command
def messages(client: Client, session: Name, limit: Limit = 50) -> CommandResult:
    """Print what was said in a session."""
    page = client.sessions.messages(session_named(client, session), limit=limit)
    return CommandResult(page.messages, drawn_messages(page.messages))


@commands.command("todos")
@command
def todos(client: Client, session: Name) -> CommandResult:
    """Print what the agent plans to do, and what of it is done: its list of the last run that had one."""
    found = client.sessions.todos(session_named(client, session)).todos
    return CommandResult(found, drawn_todos(found) if found else "The agent has made no list.")


@commands.command("questions")
@command
def questions(
    client: Client,
    every: Annotated[bool, typer.Option("--all", help="Also those that were answered, or are over.")] = False,
    limit: Limit = 50,
) -> CommandResult:
    """List what the agents of your sessions ask you, newest first."""
    found = client.sessions.questions(state=None if every else QuestionStatus.PENDING, limit=limit).questions
    rows = TableRows(
        columns=("SESSION", "KIND", "STATUS", "ASKED", "QUESTION"),
        rows=(
            (short_id(one.session_id), str(one.kind), str(one.status), local_time(one.created_at), one.prompt)
            for one in found
        ),
        empty="No agent asks you anything.",
        whole=("SESSION",),
    )
    return CommandResult(found, rows)


@commands.command("answer")
@command
def answer(
    client: Client,
    session: Name,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ANSWER",
            help="The number or the words of an option, or words of your own; for a permission allow, session, or deny "
            "and a reason. Left out: the question is shown.",
            show_default=False,
        ),
    ] = None,
) -> CommandResult:
    """Answer what a session's agent asks; of several questions the oldest."""
    found = session_named(client, session)
    pages = every_page(lambda before: client.sessions.questions(state="pending", before=before))
    asked = [one for page in pages for one in page.questions if one.session_id == found]
    if not asked:
        raise NotFound(f"The agent of the session {short_id(found)} asks nothing at the moment.")
    question = asked[-1]
    if not words:
        return CommandResult(question, drawn_question(question))
    answered = client.sessions.answer(question.question_id, **typed_answer(question, " ".join(words)))
    return CommandResult(answered, "The agent goes on.")


@commands.command("shell")
@errors_shown
def shell(session: Name, data: Data = None) -> None:
    """Open a terminal in a session's sandbox, beside its agent. Ctrl-] leaves the shell running, `exit` ends it."""
    if not sys.stdin.isatty():
        raise InvalidInput("A shell needs a terminal. In a script, use `contextbase chat` instead.")
    with connect(data) as client:
        found = session_named(client, session)
    asyncio.run(_shell(address(data), found))


@commands.command("stop")
@command
def stop(client: Client, session: Name) -> CommandResult:
    """Cancel a session's runs, and stop its sandbox once its files are stored. The next message starts it again."""
    found = session_named(client, session)
    return CommandResult(client.sessions.stop(found), f"The session stops. Go on: contextbase chat {short_id(found)}")


@commands.command("close")
@command
def close(client: Client, session: Name) -> CommandResult:
    """Stop a session for good. What was said and done stays readable."""
    return CommandResult(client.sessions.close(session_named(client, session)), "The session is closed.")


@commands.command("pin")
@command
def pin(client: Client, session: Name) -> CommandResult:
    """Keep a session's sandbox running while nobody uses it."""
    return CommandResult(client.sessions.pin(session_named(client, session)), "The session is pinned.")


@commands.command("unpin")
@command
def unpin(client: Client, session: Name) -> CommandResult:
    """Let a session's sandbox stop when nobody uses it."""
    return CommandResult(client.sessions.unpin(session_named(client, session)), "The session is not pinned any more.")


@commands.command("land")
@command
def land(client: Client, session: Name) -> CommandResult:
    """Put what waits in a session into the project, through the gate."""
    return _decided(session, client.sessions.land(session_named(client, session)))


@commands.command("discard")
@command
def discard(client: Client, session: Name) -> CommandResult:
    """Throw away what waits in a session. The conversation stays."""
    return _decided(session, client.sessions.discard(session_named(client, session)))


@commands.command("rewind")
@command
def rewind(client: Client, session: Name, message: Message, files: Files = False) -> CommandResult:
    """Take a conversation back to a message; what came after it is hidden. What has landed stays in the project."""
    found = session_named(client, session)
    rewound = client.sessions.rewind(found, message_named(client, found, message), files=files)
    return CommandResult(rewound, drawn_rewind(rewound))


@commands.command("fork")
@command
def fork(
    client: Client,
    session: Name,
    message: Annotated[
        str | None,
        typer.Argument(metavar="MESSAGE", help="As for rewind. Default: the end.", show_default=False),
    ] = None,
) -> CommandResult:
    """Make a new session that goes on from a message of this one."""
    found = session_named(client, session)
    named = None if message is None else message_named(client, found, message)
    made = client.sessions.fork(found, named)
    return CommandResult(made, f"The new session: contextbase chat {short_id(made.id)}")


@commands.command("share")
@command
def share(
    client: Client,
    session: Name,
    user: Slug,
    drive: Annotated[
        bool,
        typer.Option("--drive", help="Let them send messages, stop runs and answer the agent, too: with your rights."),
    ] = False,
) -> CommandResult:
    """Let a person read a session of yours, or drive it."""
    level = ShareLevel.DRIVE if drive else ShareLevel.READ
    found = client.session_shares.share(session_named(client, session), user, level)
    return CommandResult(found.shares, _drawn_shares(found))


@commands.command("unshare")
@command
def unshare(client: Client, session: Name, user: Slug) -> CommandResult:
    """Share a session with a person no more; with your own slug, leave one that somebody shares with you."""
    named = session_named(client, session)
    client.session_shares.unshare(named, user)
    return CommandResult({"session": str(named), "user": user}, f"The session is not shared with {user} any more.")


@commands.command("shares")
@command
def shares(client: Client, session: Name) -> CommandResult:
    """List whom a session is shared with."""
    found = client.session_shares.list(session_named(client, session))
    return CommandResult(found.shares, _drawn_shares(found))


@commands.command("rescue")
@command
def rescue(
    client: Client,
    session: Name,
    target: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new or empty folder on this machine.", show_default=False)
    ],
) -> CommandResult:
    """Bring what is stored of a session's own files here: its work that is not in the project, and what the project
    does not take. It works while the session's machine is gone."""
    found = session_named(client, session)
    with told_if_interrupted(lambda: f"{target} has only a part of it."):
        files = unpack(target, client.sessions.snapshot(found), any_name_inside)
    return CommandResult({"target": str(target), "files": files}, f"{counted(files, 'file')} written to {target}.")


@commands.command("delete")
@command
def delete(client: Client, session: Name, yes: Yes = False, *, as_json: bool) -> CommandResult:
    """Delete a session with everything that was said in it. What landed stays in the project."""
    found = session_named(client, session)
    if not yes:
        if as_json:
            raise InvalidInput("Deleting with --json needs --yes.")
        typer.confirm(f"Delete the session {short_id(found)} and everything that was said in it?", abort=True)
    return CommandResult(client.sessions.delete(found), "The session is deleted. What landed stays in the project.")


async def _shell(server: tuple[str, str], session: UUID) -> None:
    size = terminal_size()
    async with (
        AsyncClient(*server) as client,
        client.sessions.terminal(session, rows=size.lines, columns=size.columns) as terminal,
    ):
        error_console.print("[dim]Ctrl-] leaves this shell running; `exit` ends it.[/]", highlight=False)
        await shown_terminal(terminal, leave=LEAVE)
    if terminal.refusal is not None:
        raise Unavailable(f"The terminal was closed: {terminal.refusal}")


def _all(client: Client) -> Iterator[SessionView]:
    for page in every_page(lambda before: client.sessions.list(before=before, limit=100)):
        yield from page.sessions


def _shared(client: Client) -> Iterator[SessionView]:
    for page in every_page(lambda before: client.session_shares.list_shared_with_me(before=before, limit=100)):
        yield from page.sessions


def _drawn_shares(found: SessionShareList) -> TableRows:
    return TableRows(
        columns=("USER", "NAME", "MAY", "SINCE"),
        rows=((one.user, one.display_name, one.level, local_time(one.shared_at)) for one in found.shares),
        empty="The session is shared with nobody.",
        whole=("USER",),
    )


def _decided(session: str, landed: LandingView) -> CommandResult:
    return CommandResult(landed, drawn_landing(landed, session), is_failure=not went_in(landed))
