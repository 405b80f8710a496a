"""The clients' surface: both have the same methods, every one is documented, and what callers need is exported."""

import inspect
from collections.abc import Iterator

import pytest

import contextbase.sdk
from contextbase import errors
from contextbase.sdk import AsyncClient, AsyncSandbox, Client, Sandbox
from contextbase.sdk.terminal import AsyncTerminal, Terminal

PARTS = (
    "projects",
    "tokens",
    "policies",
    "history",
    "reviews",
    "workspaces",
    "commands",
    "sandboxes",
    "leases",
    "events",
)


def pairs() -> Iterator[tuple[type, type]]:
    """Each class of the sync client, and the async one it stands for."""
    yield Client, AsyncClient
    yield Sandbox, AsyncSandbox
    yield Terminal, AsyncTerminal
    with Client("http://server", "cb_x") as client:
        for part in PARTS:
            yield type(getattr(client, part)), type(getattr(client._client, part))


def methods(kind: type) -> dict[str, inspect.Signature]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(method) for name, method in found if not name.startswith("_")}


def test_every_part_of_the_client_is_compared() -> None:
    with Client("http://server", "cb_x") as client:
        assert {name for name in vars(client) if not name.startswith("_")} == set(PARTS)
        assert {name for name in vars(client._client) if not name.startswith("_")} == set(PARTS)


@pytest.mark.parametrize(("sync", "asynchronous"), list(pairs()), ids=lambda kind: kind.__name__)
def test_both_clients_have_the_same_methods_with_the_same_arguments(sync: type, asynchronous: type) -> None:
    def arguments(kind: type) -> dict[str, list[inspect.Parameter]]:
        return {name: list(signature.parameters.values()) for name, signature in methods(kind).items()}

    assert arguments(sync) == arguments(asynchronous)
    own = inspect.signature(sync).parameters, inspect.signature(asynchronous).parameters
    if sync is Client:
        assert list(own[0].values()) == list(own[1].values())


@pytest.mark.parametrize("kind", [kind for pair in pairs() for kind in pair], ids=lambda kind: kind.__name__)
def test_every_public_method_says_what_it_does(kind: type) -> None:
    assert kind.__doc__
    assert [name for name in methods(kind) if not getattr(kind, name).__doc__] == []


def test_lists_are_listed_and_single_things_are_got() -> None:
    """One verb for one thing, in every part."""
    allowed = {"log", "audit", "export_audit", "diff"}  # git's words, which everybody knows
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
    wanted = {"Change", "Pick", "MergeRule", "LeaseRule", "Limits", "CommandOptions", "ExecOptions", "SandboxOptions"}
    assert wanted | {"AuditFilter", "ArchiveFormat", "Uploadable"} <= set(contextbase.sdk.__all__)
