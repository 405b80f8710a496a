"""What a command costs before it does anything: which modules it imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

from contextbase.interfaces.cli.command_table import COMMANDS

# What takes longer to import than everything that --help needs.
HEAVY = ("asyncpg", "contextbase.bootstrap", "contextbase.config", "contextbase.merge", "contextbase.sdk",
         "contextbase.wire", "fastapi", "httpx", "uvicorn")  # fmt: skip

SCRIPT = """
import json, sys
from contextbase.interfaces.cli.main import main
sys.argv = ["contextbase", *json.loads(sys.argv[1])]
try:
    main()
finally:
    print("imported", json.dumps(sorted(sys.modules)))
"""


def imported(*arguments: str, script: str = SCRIPT, **variables: str) -> set[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CONTEXTBASE_")}
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(arguments)],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said, _, modules = done.stdout.rpartition("imported ")
    assert modules, done.stderr
    assert said or done.stderr
    return set(json.loads(modules))


def test_the_overview_of_all_commands_imports_no_command() -> None:
    modules = imported("--help")
    assert modules.isdisjoint(HEAVY)
    assert modules.isdisjoint(entry.module for entry in COMMANDS)
    assert "pydantic" not in modules


def test_completing_a_commands_name_imports_no_command() -> None:
    modules = imported(_CONTEXTBASE_COMPLETE="complete_bash", COMP_WORDS="contextbase st", COMP_CWORD="1")
    assert modules.isdisjoint(HEAVY)
    assert modules.isdisjoint(entry.module for entry in COMMANDS)


def test_status_asks_a_server_without_the_client_for_it(tmp_path: Path) -> None:
    modules = imported("status", "--data", str(tmp_path))
    assert "contextbase.interfaces.cli.status" in modules
    assert modules.isdisjoint(HEAVY)


def test_a_command_imports_the_client_and_no_part_of_the_server(tmp_path: Path) -> None:
    modules = imported("ls", "--project", "p", "--data", str(tmp_path))
    assert "contextbase.sdk" in modules
    assert modules.isdisjoint({"asyncpg", "contextbase.bootstrap", "contextbase.merge", "fastapi", "uvicorn"})


def test_the_bridge_for_agent_programs_imports_the_standard_library_alone(tmp_path: Path) -> None:
    """They wait for it whenever they start."""
    script = SCRIPT.replace("contextbase.interfaces.cli.main", "contextbase.interfaces.cli.start")
    modules = imported("mcp", "--data", str(tmp_path), script=script)
    assert "contextbase.interfaces.mcp.bridge" in modules
    assert modules.isdisjoint({*HEAVY, "asyncio", "mcp", "pydantic", "rich", "starlette", "typer"})
