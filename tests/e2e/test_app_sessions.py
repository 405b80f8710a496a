"""Sessions that apps compose, on a server that works on their runs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from tests.support.require import require_root
from tests.support.scripted_model import script
from tests.support.server import ServerProcess

from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.sdk import AsyncClient, Change
from contextbase.vocabulary import LandingState, RunState
from contextbase.wire.agent_config import ConfigLayer
from contextbase.wire.session import RunView

pytestmark = pytest.mark.timeout(1200)

_PATIENCE = 600.0
_V1 = "registry/runtime/1"
_V2 = "registry/runtime/2"


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[AsyncClient]:
    require_root()
    token = (server.data / "owner-token").read_text().strip()
    async with AsyncClient(server.url, token) as client:
        yield client


def manifest(app: str, version: str = "1", **changes: Any) -> dict[str, Any]:
    prefix = f"app/{app}/registry/runtime/{version}"
    return {
        "appId": app,
        "runtimeVersion": version,
        "workspaceTemplatePrefix": f"{prefix}/template/",
        "requiredPaths": ["/workspace/.agent_data", "/workspace/.kb/app", "/workspace/.kb/project"],
        "seedFiles": [{"from": f"{prefix}/seeds/TODO.md", "to": "/workspace/TODO.md", "ifMissingOnly": True}],
        "mountPoints": [
            {"name": "app_kb", "targetPath": "/workspace/.kb/app", "readOnly": True},
            {"name": "project_kb", "targetPath": "/workspace/.kb/project", "readOnly": True},
            {"name": "user_files", "targetPath": "/workspace/.user-files", "readOnly": False},
            {"name": "agent_data", "targetPath": "/workspace/.agent_data", "readOnly": False},
        ],
        "conflictPolicy": "merge",
        "protectedPaths": ["/workspace/.agent_data", "/workspace/safe"],
        "cleanupRules": [
            {"action": "remove_if_exists", "path": "/workspace/scratch"},
            {"action": "truncate_if_exists", "path": "/workspace/log.txt"},
            {"action": "remove_if_exists", "path": "/workspace/safe/kept.txt"},
        ],
    } | changes


async def an_app(client: AsyncClient) -> str:
    name = f"a-{uuid4().hex[:10]}"
    await client.apps.register(name)
    files = {
        f"{_V1}/template/guide.md": "one\ntwo\nthree\n",
        f"{_V1}/template/other.md": "first\n",
        f"{_V1}/seeds/TODO.md": "# To do\n",
        "kb/handbook/style.md": "Be brief.\n",
        "project/default/owner/files/notes.md": "mine\n",
    }
    changes = [Change(action="write", path=path, text=text) for path, text in files.items()]
    await client.commit(f"app-{name}", changes, base_seq=0)
    await client.app_settings.publish(name, manifest(name))
    await client.app_settings.set_config(name, ConfigLayer.APP, {"provider": "scripted"})
    return name


async def sent(client: AsyncClient, session: UUID, *steps: dict[str, object]) -> RunView:
    """The run as it ended."""
    run = await client.sessions.send(session, script(*steps))
    async with asyncio.timeout(_PATIENCE):
        async for _ in client.sessions.events(run.id):
            pass
    return await client.sessions.run(run.id)


async def ran(client: AsyncClient, session: UUID, *steps: dict[str, object]) -> RunView:
    ended = await sent(client, session, *steps)
    assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
    return ended


def shell(command: str) -> dict[str, object]:
    return {"tool": "bash", "input": {"command": command}}


async def printed(client: AsyncClient, session: UUID, command: str) -> str:
    """What a command prints in the session's folder."""
    run = await ran(client, session, shell(command), {"text": "Done."})
    [tool] = (await client.sessions.tools(run.id)).tools
    return str(tool.output)


async def text_of(client: AsyncClient, app: str, path: str) -> str | None:
    found = (await client.checkout(f"app-{app}", paths=[path], contents=True)).entries
    return found[0].text if found else None


async def test_a_session_is_composed_of_its_layers_and_stored_where_each_belongs(client: AsyncClient) -> None:
    app = await an_app(client)
    session = (await client.sessions.create_from_app(app)).id
    told = await printed(
        client, session, "cat guide.md TODO.md .kb/app/handbook/style.md .user-files/notes.md; ls -d .kb/project"
    )
    for part in ("one\ntwo\nthree", "# To do", "Be brief.", "mine", ".kb/project"):
        assert part in told
    edits = (
        "echo four >> guide.md; echo more >> .user-files/notes.md; echo new > .user-files/new.md; "
        "echo changed > .kb/app/handbook/style.md; mkdir -p .claude scratch safe; echo x > .claude/x; "
        "echo y > scratch/y; echo z > log.txt; echo k > safe/kept.txt"
    )
    run = await ran(client, session, shell(edits), {"text": "Done."})
    assert run.landed is not None
    assert run.landed.state is LandingState.LANDED
    assert sorted(path.path for path in run.landed.paths) == ["guide.md", "log.txt", "safe/kept.txt", "scratch/y"]
    home = f"project/default/owner/session/{session}/workspace"
    assert await text_of(client, app, f"{home}/guide.md") == "one\ntwo\nthree\nfour\n"
    assert await text_of(client, app, "project/default/owner/files/notes.md") == "mine\nmore\n"
    assert await text_of(client, app, "project/default/owner/files/new.md") == "new\n"
    assert await text_of(client, app, "kb/handbook/style.md") == "Be brief.\n"
    tree = [entry.path for entry in (await client.checkout(f"app-{app}", prefix=home)).entries]
    assert not [path for path in tree if ".kb" in path or ".user-files" in path or ".claude" in path]
    # Before the next run: clean-up, knowledge as the app has it, what others did to the user's files.
    head = (await client.checkout(f"app-{app}", limit=1)).seq
    change = Change(action="write", path="project/default/owner/files/notes.md", text="mine\nmore\nfrom the page\n")
    await client.commit(f"app-{app}", [change], base_seq=head)
    told = await printed(
        client,
        session,
        "cat .kb/app/handbook/style.md .user-files/notes.md guide.md; ls; wc -c < log.txt; cat safe/kept.txt",
    )
    assert "Be brief." in told
    assert "from the page" in told
    assert "four" in told
    assert "scratch" not in told
    assert "\n0\nk" in told
    shown = await client.sessions.get(session)
    assert shown.app == app


async def test_a_session_moves_to_a_new_manifest_between_runs_and_keeps_its_work(client: AsyncClient) -> None:
    app = await an_app(client)
    session = (await client.sessions.create_from_app(app)).id
    pinned = (await client.sessions.create_from_app(app, runtime_version="1")).id
    await ran(client, session, shell("sed -i s/three/THREE/ guide.md"), {"text": "Done."})
    await ran(client, pinned, {"text": "Hello."})
    files = {
        f"{_V2}/template/guide.md": "ONE\ntwo\nthree\n",
        f"{_V2}/template/other.md": "second\n",
        f"{_V2}/seeds/TODO.md": "# Another\n",
    }
    changes = [Change(action="write", path=path, text=text) for path, text in files.items()]
    await client.commit(f"app-{app}", changes, base_seq=(await client.checkout(f"app-{app}", limit=1)).seq)
    await client.app_settings.publish(app, manifest(app, "2"))
    told = await printed(client, session, "cat guide.md other.md TODO.md")
    assert "ONE\ntwo\nTHREE\nsecond\n# To do" in told  # merged, followed, kept
    assert "one\ntwo\nthree\nfirst" in await printed(client, pinned, "cat guide.md other.md")
    await client.sessions.set_runtime_version(pinned, None)
    assert "ONE\ntwo\nthree\nsecond" in await printed(client, pinned, "cat guide.md other.md")
    with pytest.raises(NotFound):
        await client.sessions.set_runtime_version(pinned, "9")


async def test_the_configuration_of_the_layers_reaches_the_agent_with_its_secrets(client: AsyncClient) -> None:
    app = await an_app(client)
    await client.app_settings.set_secret(app, ConfigLayer.APP, "token", "hunter2-secret")
    await client.app_settings.set_config(
        app,
        ConfigLayer.USER,
        {"environment": {"GREETING": "hello", "TOKEN": {"secret": "token"}}, "landing": "never"},
    )
    session = await client.sessions.create_from_app(app, overrides={"limits": {"seconds": 300}})
    assert (session.provider, session.land) == ("scripted", "never")
    told = await printed(client, session.id, "echo $GREETING ${#TOKEN}")
    assert "hello 14" in told
    await client.app_settings.delete_secret(app, ConfigLayer.APP, "token")
    ended = await sent(client, session.id, {"text": "Hello."})
    assert (ended.state, ended.reason) == (RunState.FAILED, "conflict")


async def test_a_session_whose_manifest_is_not_met_does_not_begin(client: AsyncClient) -> None:
    app = await an_app(client)
    with pytest.raises(Conflict):
        await client.sessions.create_from_app((await client.apps.register(f"e-{uuid4().hex[:8]}")).name)
    with pytest.raises(NotFound):
        await client.sessions.create_from_app(app, runtime_version="9")
    wrong = manifest(app, requiredPaths=["/workspace/nowhere"]) | {"runtimeVersion": "wrong"}
    empty = manifest(app, "empty", seedFiles=[])
    for document in (wrong, empty):
        await client.app_settings.publish(app, document)
        session = (await client.sessions.create_from_app(app)).id
        ended = await sent(client, session, {"text": "Hello."})
        assert (ended.state, ended.reason) == (RunState.FAILED, "conflict"), ended.message
    await client.apps.change(app, enabled=False)
    with pytest.raises(Forbidden):
        await client.sessions.create_from_app(app)


async def test_a_person_works_in_a_folder_of_their_own(client: AsyncClient, server: ServerProcess) -> None:
    app, slug = await an_app(client), f"p-{uuid4().hex[:8]}"
    await client.users.create(slug)
    await client.roles.grant(slug, "member", f"app:{app}")
    await client.apps.set_visibility(app, members=[f"user:{slug}"])
    secret = (await client.tokens.create(slug, kind="user", actions=["read", "write"])).secret
    async with AsyncClient(server.url, secret) as person:
        session = (await person.sessions.create_from_app(app)).id
        told = await printed(
            person, session, "cat TODO.md; ls -A .user-files; echo own > .user-files/own.md; echo x > x.md"
        )
        assert "# To do" in told
        assert "notes.md" not in told  # of somebody else
        assert "own" in await printed(person, session, "cat .user-files/own.md x.md")
    assert await text_of(client, app, f"project/default/{slug}/files/own.md") == "own\n"
    assert await text_of(client, app, f"project/default/{slug}/session/{session}/workspace/x.md") == "x\n"


async def test_the_owner_of_a_session_uses_its_folder_and_nobody_else_does(
    client: AsyncClient, server: ServerProcess
) -> None:
    app, slugs = await an_app(client), [f"p-{uuid4().hex[:8]}" for _ in range(2)]
    for slug in slugs:
        await client.users.create(slug)
        await client.roles.grant(slug, "member", f"app:{app}")
    await client.apps.set_visibility(app, members=[f"user:{slug}" for slug in slugs])
    secrets = [(await client.tokens.create(slug, kind="user", actions=["read", "write"])).secret for slug in slugs]
    own, other = [{"Authorization": f"Bearer {secret}"} for secret in secrets]
    async with AsyncClient(server.url, secrets[0]) as person, httpx.AsyncClient(base_url=server.url) as http:
        session = (await person.sessions.create_from_app(app)).id
        await printed(person, session, "echo x > x.md")
        folder = f"/api/v1/workspaces/{(await person.sessions.get(session)).agent}"

        async def answers(who: dict[str, str]) -> list[int]:
            listed = await http.get(f"{folder}/list", headers=who)
            found = await http.get(f"{folder}/search/names", params={"name": "TODO"}, headers=who)
            written = await http.put(f"{folder}/write/by-hand.md", content=b"by hand\n", headers=who)
            return [answer.status_code for answer in (listed, found, written)]

        assert await answers(own) == [200, 200, 200]
        listed = (await http.get(f"{folder}/list", headers=own)).json()
        assert {"TODO.md", "x.md", "by-hand.md"} <= {entry["path"] for entry in listed["entries"]}
        assert "by hand" in await printed(person, session, "cat by-hand.md")
        assert await answers(other) == [403, 403, 403]
        for scope in ("platform", f"app:{app}"):
            await client.roles.revoke(slugs[0], "member", scope)
        await asyncio.sleep(2)  # a second is promised, and a busy machine is not quicker
        assert set(await answers(own)) <= {403, 404}


async def test_commands_skills_and_the_system_prompt_of_the_layers_reach_the_agent(client: AsyncClient) -> None:
    app = await an_app(client)
    skill = "---\ndescription: How to greet people\n---\nSay hello twice.\n"
    head = (await client.checkout(f"app-{app}", limit=1)).seq
    change = Change(action="write", path="registry/skills/greeting/SKILL.md", text=skill)
    await client.commit(f"app-{app}", [change], base_seq=head)
    steps = script(shell("cat .kb/skills/greeting/SKILL.md; echo $GREETING > said.md"), {"text": "Done."})
    await client.app_settings.set_config(
        app,
        ConfigLayer.PROJECT,
        {
            "skills": ["greeting"],
            "commands": {"greet": steps.replace("$GREETING", "$1")},
            "system_prompt": "Always greet.",
        },
    )
    session = (await client.sessions.create_from_app(app)).id
    run = await client.sessions.send(session, "/greet Ann")
    async with asyncio.timeout(_PATIENCE):
        async for _ in client.sessions.events(run.id):
            pass
    ended = await client.sessions.run(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.message
    [tool] = (await client.sessions.tools(run.id)).tools
    assert "Say hello twice." in str(tool.output)
    assert ended.landed is not None
    assert [path.path for path in ended.landed.paths] == ["said.md"]  # the skill is not the session's own
    home = f"project/default/owner/session/{session}/workspace"
    assert await text_of(client, app, f"{home}/said.md") == "Ann\n"
    # A skill that nobody names any more is gone, and one that is not there is told.
    await client.app_settings.set_config(app, ConfigLayer.PROJECT, {"skills": []})
    assert "SKILL" not in await printed(client, session, "find .kb -type f")
    await client.app_settings.set_config(app, ConfigLayer.PROJECT, {"skills": ["nothing"]})
    ended = await sent(client, session, {"text": "Hello."})
    assert (ended.state, ended.reason) == (RunState.FAILED, "conflict")


async def test_an_agent_without_mcp_does_not_ignore_the_servers_that_it_was_given(client: AsyncClient) -> None:
    app = await an_app(client)
    servers = {"mcp_servers": {"clock": {"type": "stdio", "command": ["date"]}}}
    session = (await client.sessions.create_from_app(app, overrides=servers)).id
    ended = await sent(client, session, {"text": "Hello."})
    assert (ended.state, ended.reason) == (RunState.FAILED, "setup_failed")
    assert "MCP" in str(ended.message)
