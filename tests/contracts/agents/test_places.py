"""What agent programs read in the tree they work in, and what they must not run there."""

import json
from base64 import b64encode

import pytest
from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import DOT, OPENCODE_CODE, PROGRAMS, Program, of_type, outcome
from tests.support.executor_site import attached, gateway_handler
from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, script


@in_sandboxes("site", slow_in="docker")
async def test_hooks_settings_and_servers_of_the_tree_are_not_run_but_its_words_are_read(
    site: Site, program: Program
) -> None:
    model = RecordedModel()
    async with attached(site, {"model": gateway_handler(model)}, **program.shown()) as there:
        for path, content in program.hostile.items():
            there.write(path, content)
        there.write("CLAUDE.md" if program.name == "claude" else "AGENTS.md", "Say please, in this place.")
        there.write(".claude/skills/seeds/SKILL.md", "---\nname: seeds\ndescription: How to sow\n---\nDeep.")
        task = script({"tool": "bash", "input": {"command": "echo ran"}}, {"text": "Done."})
        there.write(".claude/commands/sow.md", f"---\nallowed-tools: Bash\n---\nSow $ARGUMENTS.\n{task}")
        there.write_bytes("upload/dot.png", DOT)
        kinds = {"upload/dot.png": "image/png", "upload/a.csv": "text/csv"}
        files = [{"path": path, "media_type": kind} for path, kind in kinds.items()]
        events = await there.run(program.run("/sow the beans", options=program.options, attachments=files))
        assert outcome(events) == "completed", events
        assert of_type(events, "tool.end")[0]["output"].strip() == "ran"
        assert there.spec.folder is not None
        assert not (there.spec.folder / "hooked").exists()
        assert not (there.spec.folder / "served").exists()
    for words in (b"Say please, in this place.", b"- seeds: How to sow (.claude/skills/seeds/SKILL.md)"):
        assert any(words in request.body for request in model.requests)
    for words in (b"Sow the beans.", b"- upload/a.csv", b64encode(DOT)):
        assert any(words in request.body for request in model.requests), words
    assert not model.offered & {"WebFetch", "webfetch"}  # its options say so


async def test_codex_is_told_once_in_a_conversation_that_goes_on_that_its_instructions_changed(one_site: Site) -> None:
    model, program, known = RecordedModel(), PROGRAMS["codex"], {}
    texts = ("Speak of 41.", "Speak of 41.", "Speak of 42.", "Speak of 42.", "Speak of 41.", None, None)
    async with attached(one_site, {"model": gateway_handler(model)}, **program.shown()) as there:
        for number, text in enumerate(texts):  # each time in a new process
            assert there.spec.folder is not None
            if text is None:
                (there.spec.folder / "AGENTS.md").unlink(missing_ok=True)
            else:
                there.write("AGENTS.md", text)
            events = await there.run(program.run(script({"text": f"{number}"}), **known))
            assert outcome(events) == "completed", events
            known = {"resume": of_type(events, "run.finished")[0]["sdk_session_id"]}
    developers = [item for item in model.requests[-1].document["input"] if item.get("role") == "developer"]
    told = [part["text"] for item in developers for part in item["content"] if "place_instructions" in part["text"]]
    numbers = [[number for number in ("41", "42") if f"Speak of {number}." in text] for text in told]
    assert numbers == [["41"], ["42"], ["41"], []]


PLUGINS = {
    ".opencode/plugin/bad.js": OPENCODE_CODE,
    ".opencode/plugins/bad.ts": OPENCODE_CODE,
    ".opencode/opencode.json": json.dumps({"plugin": ["./bad.js"]}),
    "opencode.jsonc": json.dumps({"plugins": ["./bad.js"]}),
}


@pytest.mark.parametrize("site", ["bubblewrap", "docker"], indirect=True)
async def test_opencode_is_not_started_where_it_would_run_a_plugin_of_the_tree(site: Site) -> None:
    program = PROGRAMS["opencode"]
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **program.shown()) as there:
        there.write("bad.js", OPENCODE_CODE)
        assert there.spec.folder is not None
        for path, content in PLUGINS.items():
            there.write(path, content)
            events = await there.run(program.run(script({"text": "Never said."})))
            assert outcome(events) == "agent_error", (path, events)
            assert not (there.spec.folder / "hooked").exists()
            (there.spec.folder / path).unlink()
