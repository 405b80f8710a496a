"""The clients' surface: both have the same methods, every one is documented, and what callers need is exported."""

import asyncio
import inspect
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import contextbase.sdk
from contextbase import errors
from contextbase.sdk import AsyncClient, AsyncSandbox, AsyncSession, Client, Sandbox, Session
from contextbase.sdk.aio import waiting as aio_waiting
from contextbase.sdk.aio.command_pipe import AsyncCommandPipe
from contextbase.sdk.aio.terminal import AsyncTerminal
from contextbase.sdk.blocking import waiting as blocking_waiting
from contextbase.sdk.blocking.command_pipe import CommandPipe
from contextbase.sdk.blocking.terminal import Terminal

PARTS = (
    "projects",
    "tokens",
    "policies",
    "users",
    "departments",
    "roles",
    "models",
    "files",
    "history",
    "search",
    "reviews",
    "workspaces",
    "commands",
    "sandboxes",
    "sessions",
    "session_shares",
    "agents",
    "apps",
    "app_files",
    "app_settings",
    "leases",
    "events",
    "feed",
    "machines",
)


def pairs() -> Iterator[tuple[type, type]]:
    """Each class of the blocking client, and the async one it is generated from."""
    yield Client, AsyncClient
    yield Sandbox, AsyncSandbox
    yield Session, AsyncSession
    yield Terminal, AsyncTerminal
    yield CommandPipe, AsyncCommandPipe
    blocking, asynchronous = Client("http://server", "cb_x"), AsyncClient("http://server", "cb_x")
    with blocking:
        for part in PARTS:
            yield type(getattr(blocking, part)), type(getattr(asynchronous, part))
    asyncio.run(asynchronous.close())


def methods(kind: type) -> dict[str, inspect.Signature]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(method) for name, method in found if not name.startswith("_")}


def answer_of(signature: inspect.Signature) -> str:
    """What a method gives, whichever way: async generators and context managers as their blocking counterparts."""
    text = str(signature.return_annotation).replace("typing.", "").replace("collections.abc.", "")
    text = re.sub(r"contextbase\.sdk\.(aio|blocking)\.\w+\.(Async)?", "", text)
    return re.sub(r"AsyncGenerator\[(.*), None\]", r"Generator[\1, None, None]", text).replace("Async", "")


def taken(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Only an async client takes async pieces of content."""
    return [
        parameter.replace(annotation=None) if parameter.name == "content" else parameter
        for parameter in signature.parameters.values()
    ]


def test_every_part_of_the_client_is_compared() -> None:
    async def parts() -> set[str]:
        async with AsyncClient("http://server", "cb_x") as client:
            return set(vars(client))

    with Client("http://server", "cb_x") as client:
        assert {name for name in vars(client) if not name.startswith("_")} == set(PARTS)
    assert {name for name in asyncio.run(parts()) if not name.startswith("_")} == set(PARTS)


@pytest.mark.parametrize(("blocking", "asynchronous"), list(pairs()), ids=lambda kind: kind.__name__)
def test_both_clients_have_the_same_methods(blocking: type, asynchronous: type) -> None:
    ours, theirs = methods(blocking), methods(asynchronous)
    assert list(ours) == list(theirs)
    for name, signature in ours.items():
        assert taken(signature) == taken(theirs[name])
        assert answer_of(signature) == answer_of(theirs[name])
        assert inspect.getdoc(getattr(blocking, name))
        assert not inspect.iscoroutinefunction(getattr(blocking, name))


def test_both_clients_are_made_with_the_same_arguments() -> None:
    ours, theirs = inspect.signature(Client).parameters, inspect.signature(AsyncClient).parameters
    assert list(ours) == list(theirs)
    assert [ours[name] for name in ours if name != "transport"] == [
        theirs[name] for name in ours if name != "transport"
    ]


def test_what_is_written_by_hand_on_both_sides_agrees() -> None:
    ours, theirs = (
        {name: list(inspect.signature(function).parameters) for name, function in inspect.getmembers(module, callable)
         if function.__module__ == module.__name__}
        for module in (blocking_waiting, aio_waiting)
    )  # fmt: skip
    assert ours == theirs
    assert blocking_waiting.__all__ == aio_waiting.__all__


def test_code_that_blocks_needs_no_event_loop() -> None:
    """The blocking client starts no loop and no thread, and does not import asyncio by itself."""
    with Client("http://server", "cb_x"):
        assert threading.active_count() == 1 or "contextbase" not in str(threading.enumerate())
    sources = Path(blocking_waiting.__file__).parent.glob("*.py")
    assert not [path.name for path in sources if re.search(r"\b(asyncio|async def|await)\b", path.read_text())]


@pytest.mark.parametrize("kind", [kind for pair in pairs() for kind in pair], ids=lambda kind: kind.__name__)
def test_every_public_method_says_what_it_does(kind: type) -> None:
    assert kind.__doc__
    assert [name for name in methods(kind) if not getattr(kind, name).__doc__] == []


def test_lists_are_listed_and_single_things_are_got() -> None:
    """One verb for one thing, in every part."""
    allowed = {"log", "audit", "export_audit", "diff", "grep", "find"}  # git's and Unix's words, which everybody knows
    allowed |= {"runs", "messages", "tools", "questions", "todos"}  # what a session has
    for _, kind in pairs():
        for name, signature in methods(kind).items():
            answer = str(signature.return_annotation)
            if "Page" in answer and name not in allowed:
                assert name == "list" or name.startswith("list_"), f"{kind.__name__}.{name}"
            assert not name.startswith(("show", "put", "fetch", "remove_rule")), f"{kind.__name__}.{name}"


def test_every_error_can_be_imported_from_the_sdk() -> None:
    wanted = set(errors.__all__) - {"error_of_code"}
    assert wanted <= set(contextbase.sdk.__all__)


def test_what_callers_pass_can_be_imported_from_the_sdk() -> None:
    wanted = {
        "Change",
        "Pick",
        "MergeRule",
        "LeaseRule",
        "Limits",
        "CommandOptions",
        "ExecOptions",
        "SandboxOptions",
        "PipeOptions",
    }
    assert wanted | {"AuditFilter", "ArchiveFormat", "Uploadable", "AsyncUploadable"} <= set(contextbase.sdk.__all__)
