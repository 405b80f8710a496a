"""The scripted model: the same script in three dialects, and what it does without one."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.scripted_model import script

from contextbase.errors import ModelUpstreamUnavailable
from contextbase.models.model import Dialect, ModelOperation
from contextbase.models.ports import ModelRequest
from contextbase.models.scripted import ScriptedModel

TOOLS = {
    Dialect.MESSAGES: ["Bash", "Write", "Read", "Edit", "Grep", "TodoWrite", "mcp__docs__find"],
    Dialect.RESPONSES: ["exec_command", "apply_patch", "update_plan"],
    Dialect.CHAT: ["bash", "write", "read", "edit", "grep", "todowrite", "docs_find"],
}


def request(
    dialect: Dialect, turns: list[tuple[str, str]], *, stream: bool = False, tools: list[str] | None = None
) -> ModelRequest:
    """Turns: (user | model | tool, text)."""
    names = TOOLS[dialect] if tools is None else tools
    document: dict[str, Any] = {"model": "m", "stream": stream}
    if dialect is Dialect.MESSAGES:
        messages = []
        for who, text in turns:
            result = [{"type": "tool_result", "tool_use_id": "t", "content": text}]
            content: Any = result if who == "tool" else text
            messages.append({"role": "assistant" if who == "model" else "user", "content": content})
        document |= {"messages": messages, "tools": [{"name": name} for name in names]}
    elif dialect is Dialect.RESPONSES:
        items: list[dict[str, Any]] = []
        for who, text in turns:
            if who == "tool":
                items.append({"type": "function_call_output", "call_id": "c", "output": text})
            else:
                role = "assistant" if who == "model" else "user"
                items.append({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
        inner = [{"type": "namespace", "name": "mcp__docs", "tools": [{"name": "find"}]}]
        offered = [{"type": "function", "name": name} for name in names]
        document |= {"input": items, "tools": [*offered, *inner] if names else []}
    else:
        roles = {"user": "user", "model": "assistant", "tool": "tool"}
        document["messages"] = [{"role": roles[who], "content": text} for who, text in turns]
        document["tools"] = [{"type": "function", "function": {"name": name}} for name in names]
    return ModelRequest(
        dialect=dialect,
        operation=ModelOperation.ANSWER,
        path="",
        query="",
        headers=(),
        body=json.dumps(document).encode(),
        document=document,
    )


async def asked(model: ScriptedModel, given: ModelRequest) -> tuple[int, dict[str, str], bytes]:
    async with model.open(given) as answer:
        body = b"".join([piece async for piece in answer.body])
        return answer.status, {name.decode(): value.decode() for name, value in answer.headers}, body


def said(dialect: Dialect, body: bytes) -> tuple[str, list[tuple[str, Any]]]:
    """Text and calls of a whole answer."""
    document = json.loads(body)
    text, calls = "", []
    if dialect is Dialect.MESSAGES:
        for block in document["content"]:
            if block["type"] == "text":
                text += block["text"]
            elif block["type"] == "tool_use":
                calls.append((block["name"], block["input"]))
    elif dialect is Dialect.RESPONSES:
        for item in document["output"]:
            if item["type"] == "message":
                text += item["content"][0]["text"]
            elif item["type"] == "function_call":
                name = f"{item['namespace']}.{item['name']}" if "namespace" in item else item["name"]
                calls.append((name, json.loads(item["arguments"])))
            elif item["type"] == "custom_tool_call":
                calls.append((item["name"], item["input"]))
    else:
        message = document["choices"][0]["message"]
        text = message["content"]
        functions = [call["function"] for call in message.get("tool_calls", [])]
        calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
    return text, calls


PLAN = script(
    {"reasoning": "Let me think."},
    {"text": "Writing."},
    {"tool": "write", "input": {"path": "a.txt", "content": "hello\n"}},
    {"tool": "bash", "input": {"command": "ls"}},
    {"tool": "mcp.docs.find", "input": {"q": 1}},
    {"text": "All done."},
)


@pytest.mark.parametrize("dialect", Dialect)
async def test_a_script_is_played_turn_by_turn_with_the_tools_that_are_offered(dialect: Dialect) -> None:
    model, turns, seen, words = ScriptedModel(), [("user", PLAN)], [], []
    for _ in range(4):
        _, _, body = await asked(model, request(dialect, turns))
        text, calls = said(dialect, body)
        words.append(text)
        seen += calls
        turns += [("model", text or "calling"), ("tool", "ok")]
    assert words == ["Writing.", "", "", "All done."]
    patch = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"
    assert (
        seen
        == {
            Dialect.MESSAGES: [
                ("Write", {"file_path": "/workspace/a.txt", "content": "hello\n"}),
                ("Bash", {"command": "ls", "description": "Run a command"}),
                ("mcp__docs__find", {"q": 1}),
            ],
            Dialect.RESPONSES: [("apply_patch", patch), ("exec_command", {"cmd": "ls"}), ("mcp__docs.find", {"q": 1})],
            Dialect.CHAT: [
                ("write", {"filePath": "/workspace/a.txt", "content": "hello\n"}),
                ("bash", {"command": "ls", "description": "Run a command"}),
                ("docs_find", {"q": 1}),
            ],
        }[dialect]
    )


@pytest.mark.parametrize("dialect", Dialect)
async def test_the_same_request_gets_the_same_bytes(dialect: Dialect) -> None:
    given = request(dialect, [("user", PLAN)], stream=True)
    first, second = await asked(ScriptedModel(), given), await asked(ScriptedModel(), given)
    assert first == second
    assert b"Let me think." in first[2]


@pytest.mark.parametrize("dialect", Dialect)
async def test_without_a_script_it_lists_files_writes_a_note_and_says_what_it_is(dialect: Dialect) -> None:
    model = ScriptedModel()
    turns = [("user", "<system-reminder>\nnot a task\n</system-reminder>\nTidy up the garden")]
    seen = []
    for result in ("shed.md\nroses.md", "written", ""):
        _, _, body = await asked(model, request(dialect, turns))
        text, calls = said(dialect, body)
        seen.append((text, calls))
        turns += [("model", text), ("tool", result)]
    (_, [(_, listed)]), (_, [(_, written)]), (end, none) = seen
    assert "ls" in str(listed)
    assert "tidy-up-the-garden" in str(written)
    assert "shed.md" in str(written)
    assert "not a task" not in str(written)
    assert none == []
    assert "demonstration model" in end
    assert "CONTEXTBASE_MODEL_ANTHROPIC_KEY" in end


async def test_a_later_task_is_a_new_one() -> None:
    turns = [("user", PLAN), *[("model", "x"), ("tool", "y")] * 3, ("model", "All done."), ("user", "Water the plants")]
    _, _, body = await asked(ScriptedModel(), request(Dialect.MESSAGES, turns))
    assert said(Dialect.MESSAGES, body)[1][0][0] == "Bash"


async def test_a_busy_answer_comes_once() -> None:
    model = ScriptedModel()
    given = request(Dialect.MESSAGES, [("user", script({"rate_limit": 2}, {"text": "Now."}))])
    status, headers, _ = await asked(model, given)
    assert (status, headers["retry-after"]) == (429, "2")
    assert said(Dialect.MESSAGES, (await asked(model, given))[2])[0] == "Now."


async def test_an_error_comes_each_time() -> None:
    model = ScriptedModel()
    plan = script({"error": {"status": 529, "type": "overloaded_error"}})
    for _ in range(2):
        status, _, body = await asked(model, request(Dialect.MESSAGES, [("user", plan)]))
        assert (status, json.loads(body)["error"]["type"]) == (529, "overloaded_error")


async def test_a_cut_breaks_off() -> None:
    given = request(Dialect.CHAT, [("user", script({"text": "half"}, {"cut": True}))], stream=True)
    with pytest.raises(ModelUpstreamUnavailable):
        await asked(ScriptedModel(), given)


@pytest.mark.parametrize("broken", ["no json", '{"a": 1}', '[{"dance": 1}]', '[{"tools": [{}]}]'])
async def test_a_script_that_cannot_be_read_is_said(broken: str) -> None:
    given = request(Dialect.MESSAGES, [("user", f"```script\n{broken}\n```")])
    assert "cannot be read" in said(Dialect.MESSAGES, (await asked(ScriptedModel(), given))[2])[0]


async def test_a_request_without_tools_plays_no_script() -> None:
    _, _, body = await asked(ScriptedModel(), request(Dialect.MESSAGES, [("user", PLAN)], tools=[]))
    text, calls = said(Dialect.MESSAGES, body)
    assert (calls, "Writing" in text) == ([], False)


async def test_a_tool_that_is_not_offered_is_named() -> None:
    plan = script({"tool": "dance", "input": {}})
    text, _ = said(Dialect.CHAT, (await asked(ScriptedModel(), request(Dialect.CHAT, [("user", plan)])))[2])
    assert "dance" in text


async def test_a_servers_tool_that_is_not_offered_is_searched_for_once_and_called_when_it_is_found() -> None:
    plan = script({"text": "Soon."}, {"tool": "mcp.words.say", "input": {"q": 1}}, {"text": "Done."})
    given = request(Dialect.RESPONSES, [("user", plan)], tools=["exec_command", "tool_search"])
    [search] = json.loads((await asked(ScriptedModel(), given))[2])["output"]
    assert (search["type"], search["arguments"]) == ("tool_search_call", {"query": "words say"})
    words = {"type": "namespace", "name": "mcp__words", "tools": [{"type": "function", "name": "say"}]}
    for tools, expected in (([words], ("Soon.", [("mcp__words.say", {"q": 1})])), ([], None)):
        found = {"type": "tool_search_output", "call_id": search["call_id"], "tools": tools}
        document = given.document | {"input": [*given.document["input"], search, found]}
        text, calls = said(Dialect.RESPONSES, (await asked(ScriptedModel(), replace(given, document=document)))[2])
        assert (text, calls) == expected if expected else "no tool 'mcp.words.say'" in text


async def test_files_are_named_below_the_folder_that_the_program_works_in() -> None:
    plan = "Working directory: /home/ann/work\n" + script({"tool": "read", "input": {"path": "a"}})
    _, calls = said(Dialect.MESSAGES, (await asked(ScriptedModel(), request(Dialect.MESSAGES, [("user", plan)])))[2])
    assert calls == [("Read", {"file_path": "/home/ann/work/a"})]
