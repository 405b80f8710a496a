"""`contextbase` commands run in this process: their start costs more than what they do."""

import os
import sys
from collections.abc import Callable
from uuid import uuid4

import pytest
from tests.support.server import Done, ServerProcess

from contextbase.interfaces.cli.main import main

__all__ = ["Cli", "cli_of"]

Cli = Callable[..., Done]


def cli_of(server: ServerProcess, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs a command about a new project, as the server's owner."""
    for name in list(os.environ):
        if name.startswith("CONTEXTBASE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CONTEXTBASE_DATA", str(server.data))
    monkeypatch.setenv("CONTEXTBASE_PROJECT", f"p-{uuid4().hex[:10]}")

    def run(*arguments: str, **variables: str) -> Done:
        captured.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["contextbase", *arguments])
            for name, value in variables.items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        written = captured.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code=code or 0, stdout=written.out.decode(), stderr=written.err.decode())

    assert run("project", "create", os.environ["CONTEXTBASE_PROJECT"]).code == 0
    return run
