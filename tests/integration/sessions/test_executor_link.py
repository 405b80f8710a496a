"""The executor in a real sandbox, through the server's link."""

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.executor_site import Attached, attached, gateway_handler, run_body
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Implementation, Site
from tests.support.scripted_model import RecordedModel, script

from contextbase.channel.stream import ChannelStream
from contextbase.errors import Conflict, CursorOutdated, InvalidInput, NotFound, Unavailable
from contextbase.sandbox.model import Command, SandboxState, TerminalSize
from contextbase.sessions.disk_guard import guard_disk
from contextbase.sessions.executor_link import ExecutorLink

BOUND = 120
DETACHABLE = [name for name, each in IMPLEMENTATIONS.items() if each.keeps_leftovers]


@pytest.fixture(params=DETACHABLE)
def implementation(request: pytest.FixtureRequest) -> Implementation:
    return IMPLEMENTATIONS[request.param]


@pytest.fixture
async def site(request: pytest.FixtureRequest, implementation: Implementation, tmp_path: Path) -> AsyncIterator[Site]:
    given = None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)
    async with implementation.site(tmp_path, given) as site:
        yield site


async def test_an_agent_without_any_program_uses_tools_and_says_what_it_did(site: Site) -> None:
    model = RecordedModel()
    task = script(
        {"tool": "bash", "input": {"command": "echo hello > made; cat made"}},
        {"tool": "write", "input": {"path": "notes/new.md", "content": "one\n"}},
        {"tool": "edit", "input": {"path": "notes/new.md", "old": "one", "new": "two"}},
        {"tool": "read", "input": {"path": "notes/new.md"}},
        {"text": "All is done."},
    )
    async with attached(site, {"model": gateway_handler(model)}) as there:
        body = run_body(task)
        events = await there.run(body)
        again = await there.link.call("POST", "/run", body)
        assert again.status == 200
    kinds = [event["type"] for event in events]
    assert kinds[0] == "run.status"
    assert kinds[-1] == "run.finished"
    assert events[-1]["data"]["outcome"] == "completed"
    starts = [event["data"]["name"] for event in events if event["type"] == "tool.start"]
    assert starts == ["bash", "write", "edit", "read"]
    ends = [event["data"] for event in events if event["type"] == "tool.end"]
    assert [end["status"] for end in ends] == ["ok"] * 4
    assert (ends[0]["output"], ends[-1]["output"]) == ("hello\n", "two\n")
    assert [event["data"]["text"] for event in events if event["type"] == "message.done"] == ["All is done."]
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))


bubblewrap = pytest.mark.parametrize("implementation", ["bubblewrap"], indirect=True)
"""For what does not depend on the kind of sandbox."""


@pytest.fixture
async def there(site: Site) -> AsyncIterator[Attached]:
    async with attached(site, {"model": gateway_handler(RecordedModel())}) as there:
        yield there


@bubblewrap
async def test_a_run_tells_after_which_event_its_own_come(there: Attached) -> None:
    first, second = run_body(script({"text": "One."})), run_body(script({"text": "Two."}))
    assert (await there.link.call("POST", "/run", first)).json()["after"] == 0
    before = await there.events_until("run.finished")
    told = [(await there.link.call("POST", "/run", second)).json()["after"] for _ in range(2)]
    assert told == [before[-1]["n"]] * 2
    own = await there.events_until("run.finished", after=told[0])
    assert {event["run_id"] for event in own} == {second["run_id"]}
    assert own[0]["data"]["state"] == "running"


def codes(events: list[dict[str, Any]]) -> list[str]:
    return [event["data"]["code"] for event in events if event["type"] == "run.error"]


@bubblewrap
async def test_a_run_that_takes_too_long_is_ended_with_all_its_processes(there: Attached) -> None:
    task = script({"tool": "bash", "input": {"command": "setsid sleep 86400 & sleep 86400"}})
    events = await there.run(run_body(task, limits={"seconds": 5}))
    assert "tool.start" in [event["type"] for event in events]
    assert codes(events) == ["time_limit"]
    assert events[-1]["data"]["outcome"] == "failed"
    check = Command(argv=("/bin/sh", "-c", '[ -z "$(grep -ls CONTEXTBASE_RUN= /proc/[0-9]*/environ)" ]'))
    assert (await (await there.driver.exec(there.spec.id, check)).wait()).exit_code == 0


@bubblewrap
async def test_a_run_that_says_too_much_is_ended(there: Attached) -> None:
    events = await there.run(run_body(script({"text": "x" * 20_000}, {"pause": 600}), limits={"output_bytes": 5000}))
    assert codes(events) == ["output_limit"]


@bubblewrap
async def test_a_run_that_somebody_stopped_for_a_reason_fails_with_it(there: Attached) -> None:
    body = run_body(script({"text": "I begin."}, {"pause": 600}))
    await there.link.call("POST", "/run", body)
    await there.events_until("message.delta")
    other = await there.link.call("POST", "/run", run_body("Another one."))
    assert (other.status, other.json()["code"]) == (409, "run_in_progress")
    await there.link.call("POST", "/cancel", {"reason": "disk_limit"})
    assert codes(await there.events_until("run.finished")) == ["disk_limit"]


@bubblewrap
async def test_a_run_that_lacks_something_is_refused(there: Attached) -> None:
    for wrong in ({"prompt": ""}, {"attempt": "1"}, {"limits": {"seconds": "x"}}, {"environment": {"A": 1}}):
        answer = await there.link.call("POST", "/run", run_body() | wrong)
        assert (answer.status, answer.json()["code"]) == (400, "invalid_input")
    with pytest.raises(InvalidInput):
        (await there.link.call("POST", "/run", b"{")).checked()
    with pytest.raises(NotFound):
        (await there.link.call("GET", "/nothing")).checked()


@bubblewrap
async def test_an_agent_nobody_knows_is_a_failed_run(there: Attached) -> None:
    assert codes(await there.run(run_body(provider="nobody"))) == ["agent_missing"]
    assert codes(await there.run(run_body(provider="claude-code"))) == ["agent_missing"]


@bubblewrap
async def test_a_model_that_fails_and_one_that_breaks_off_are_asked_again(there: Attached) -> None:
    fault = {"error": {"status": 529, "once": True}}
    events = await there.run(run_body(script(fault, {"rate_limit": 0}, {"text": "At last."})))
    assert events[-1]["data"]["outcome"] == "completed"
    assert [event["data"]["text"] for event in events if event["type"] == "message.done"] == ["At last."]
    refused = {"error": {"status": 400, "message": "no"}}
    assert codes(await there.run(run_body(script(refused)))) == ["model_error"]


@bubblewrap
async def test_a_cursor_of_another_journal_is_refused(there: Attached) -> None:
    with pytest.raises(CursorOutdated):
        await anext(there.link.events(1000))


async def test_files_of_the_workspace_are_listed_read_written_and_packed(there: Attached) -> None:
    link = there.link
    content = bytes(range(256)) * 4096
    assert (await link.call("PUT", "/workspace/file?path=a/b/new.bin", content)).checked()["size"] == len(content)
    assert (await link.call("GET", "/workspace/file?path=a/b/new.bin")).body == content
    listed = (await link.call("GET", "/workspace/tree?depth=5")).checked()["entries"]
    assert [entry["path"] for entry in listed] == ["a", "a/b", "a/b/new.bin"]
    packed = b"".join([piece async for piece in link.download("/workspace/download?path=a")])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getnames() == ["a/b", "a/b/new.bin"]
    with pytest.raises(NotFound):
        (await link.call("GET", "/workspace/file?path=nothing")).checked()


@bubblewrap
async def test_no_link_is_followed_out_of_the_workspace(there: Attached) -> None:
    line = "ln -s / root; ln -s /etc/passwd file; mkfifo pipe; mkdir d; ln -s ../../etc d/up"
    await (await there.driver.exec(there.spec.id, Command(argv=("/bin/sh", "-c", line)))).wait()
    for path in ("root/etc/passwd", "file", "d/up/passwd", "../etc/passwd", "pipe", "d"):
        for method in ("GET", "PUT"):
            if method == "PUT" and path in {"file", "pipe"}:
                continue  # the link itself is replaced
            answer = await there.link.call(method, f"/workspace/file?path={path}", b"bad")
            assert answer.status in {400, 404}, (method, path, answer)
    answer = await there.link.call("PUT", "/workspace/file?path=file", b"mine")
    assert answer.status == 200
    assert (await there.link.call("GET", "/workspace/file?path=file")).body == b"mine"
    listed = (await there.link.call("GET", "/workspace/tree?path=root")).status
    assert listed == 400
    everything = (await there.link.call("GET", "/workspace/tree?depth=9")).json()["entries"]
    assert all(not entry["path"].startswith("root/") for entry in everything)


@bubblewrap
async def test_agents_find_their_data_in_the_workspace(there: Attached) -> None:
    links = (await there.link.call("POST", "/workspace/link-agent-data")).checked()["links"]
    assert links == {f"/home/agent/.{name}": f"/workspace/.agent_data/{name}" for name in ("claude", "codex")}
    again = (await there.link.call("POST", "/workspace/link-agent-data")).checked()["links"]
    assert again == links
    valid = (await there.link.call("POST", "/workspace/validate")).checked()
    assert (valid["ok"], valid["agents"]["claude-code"], valid["agents"]["scripted"]) == (True, None, "1")


@bubblewrap
async def test_a_terminal_shows_what_is_typed_and_is_resized(there: Attached) -> None:
    stream = await there.link.terminal(TerminalSize(rows=30, columns=90), name="one")

    async def shows(text: bytes) -> None:
        seen = b""
        async with asyncio.timeout(BOUND):
            while text not in seen:
                piece = await stream.read()
                assert piece, seen
                seen += piece

    await stream.write(b"stty size; tty | cut -c1-8\n")
    await shows(b"30 90\r\n")
    await there.link.call("POST", "/terminals/one/size", {"rows": 40, "columns": 100})
    await stream.write(b"stty size\n")
    await shows(b"40 100\r\n")
    await there.run(run_body(script({"text": "A run beside it."})))
    await stream.write(b"echo still $((20 + 3))\n")
    await shows(b"still 23")
    await stream.write(b"exit\n")
    async with asyncio.timeout(BOUND):
        while await stream.read():
            pass


@bubblewrap
async def test_the_newest_server_is_the_one_that_is_attached(site: Site, there: Attached) -> None:
    seen: list[str] = []

    async def mine(stream: ChannelStream) -> None:
        seen.append(str(stream.about["kind"]))
        await gateway_handler(RecordedModel())(stream)

    newer = await ExecutorLink.started(
        site.driver(), there.spec.id, handlers={"model": mine}, python=site.require_python()
    )
    try:
        await newer.call("POST", "/run", run_body(script({"text": "Hello."})))
        async with asyncio.timeout(BOUND):
            async for event in newer.events():
                if event["type"] == "run.finished":
                    break
        assert event["data"]["outcome"] == "completed"
    finally:
        await newer.close()
    assert newer.about["journal"] == (await there.link.call("GET", "/status")).json()["journal"]


@bubblewrap
async def test_a_sandbox_that_does_not_run_has_no_executor(site: Site, there: Attached) -> None:
    await there.driver.stop(there.spec.id)
    with pytest.raises((Conflict, Unavailable)):
        await there.link.call("GET", "/status", patience=BOUND)
    with pytest.raises(Conflict):
        await ExecutorLink.started(there.driver, there.spec.id, handlers={}, python=site.require_python())


@bubblewrap
async def test_a_closed_link_leaves_the_run_at_work(site: Site) -> None:
    model = RecordedModel()
    spec = None
    async with attached(site, {"model": gateway_handler(model)}) as first:
        spec = first.spec
        await first.link.call("POST", "/run", run_body(script({"pause": 1}, {"text": "Alone."})))
    async with attached(site, {"model": gateway_handler(model)}, spec=spec) as later:
        events = await later.events_until("run.finished")
    assert events[-1]["data"]["outcome"] == "completed", events


@bubblewrap
async def test_a_run_that_fills_the_disk_is_ended_by_the_server(there: Attached) -> None:
    assert there.spec.folder is not None
    task = script({"tool": "bash", "input": {"command": "head -c 64000000 /dev/zero > big; sync big; sleep 86400"}})
    guarding = asyncio.create_task(
        guard_disk(there.link, there.driver, there.spec.id, folders=[there.spec.folder], most=8 << 20)
    )
    events = await there.run(run_body(task))
    assert codes(events) == ["disk_limit"]
    await guarding
    assert (await there.driver.inspect(there.spec.id)).state is SandboxState.RUNNING


@bubblewrap
async def test_a_sandbox_whose_executor_does_not_end_the_run_is_stopped(there: Attached) -> None:
    assert there.spec.folder is not None
    guarding = asyncio.create_task(
        guard_disk(there.link, there.driver, there.spec.id, folders=[there.spec.folder], most=8 << 20)
    )
    await there.link.close()
    line = "while true; do head -c 16000000 /dev/zero >> big; sync big; sleep 0.1; done"
    await there.driver.exec(there.spec.id, Command(argv=("/bin/sh", "-c", line)))
    async with asyncio.timeout(BOUND):
        await guarding
    assert (await there.driver.inspect(there.spec.id)).state is SandboxState.STOPPED
