"""The tools of our own small agent: a shell, and files of the workspace."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from contextbase.agents.model import AgentPlace

__all__ = ["ASK", "TODO", "TOOLS", "TOOLS_OF_THE_TURN", "ToolProblem", "used_tool"]

ASK: Final = "AskUserQuestion"
TODO: Final = "TodoWrite"

_TEXT: Final = {"type": "string"}
_LONGEST: Final = 256 << 10  # bytes that a tool reads or gives back
_BASH_SECONDS: Final = 600.0


def _tool(name: str, description: str, **properties: Mapping[str, str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS: Final = (
    _tool("Bash", "Run a shell command in the workspace, and get its output.", command=_TEXT),
    _tool("Read", "Read a text file of the workspace.", file_path=_TEXT),
    _tool("Write", "Write a text file of the workspace; its folders are made.", file_path=_TEXT, content=_TEXT),
    _tool(
        "Edit",
        "Replace the one place where a text stands in a file.",
        file_path=_TEXT,
        old_string=_TEXT,
        new_string=_TEXT,
    ),
)


_LIST: Final = {"type": "array"}
TOOLS_OF_THE_TURN: Final = (
    _tool(
        ASK,
        "Ask a person one or more questions, each with a question and options, and get the answers.",
        questions=_LIST,
    ),
    _tool(TODO, "Show a person your whole list of todos, each with a content and a status.", todos=_LIST),
)
"""They are about the conversation, not about files."""


class ToolProblem(Exception):
    """What the model is told instead of an answer."""


async def used_tool(name: str, given: Mapping[str, Any], place: AgentPlace) -> str:
    """`ToolProblem` when it does not work."""
    missing = [each for tool in TOOLS if tool["name"] == name for each in tool["input_schema"]["required"]]
    if any(not isinstance(given.get(each), str) for each in missing) or not missing:
        raise ToolProblem(f"There is no tool {name!r} that takes {sorted(given)}.")
    if name == "Bash":
        return await _bash(given["command"], place)
    path = place.workspace / given["file_path"]
    try:
        return await asyncio.to_thread(_with_file, name, path, given)
    except (OSError, UnicodeError) as error:
        raise ToolProblem(f"{given['file_path']}: {error}") from None


def _with_file(name: str, path: Path, given: Mapping[str, Any]) -> str:
    """The agent's own account does this: it is no more than its shell could do."""
    if name == "Read":
        with path.open("rb") as file:
            return file.read(_LONGEST).decode()
    if name == "Write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(given["content"], encoding="utf-8")
        return f"Wrote {path}."
    text = path.read_text(encoding="utf-8")
    times = text.count(given["old_string"])
    if times != 1:
        raise ToolProblem(f"The text stands {times} times in {path}, not once.")
    path.write_text(text.replace(given["old_string"], given["new_string"]), encoding="utf-8")
    return f"Edited {path}."


async def _bash(command: str, place: AgentPlace) -> str:
    """Its output goes to a file: what it leaves running keeps no pipe open that we would wait for."""
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command),
            cwd=place.workspace,
            env=dict(place.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_BASH_SECONDS):
                code = await process.wait()
        except TimeoutError:
            raise ToolProblem(f"The command took longer than {_BASH_SECONDS:.0f} seconds.") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        output.seek(0)
        text = output.read(_LONGEST).decode(errors="replace")
    if code != 0:
        raise ToolProblem(f"{text}\nThe command ended with {code}.")
    return text
