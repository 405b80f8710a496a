"""Committing and reading over HTTP."""

import asyncio
import base64
import hashlib
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from starlette.types import Message
from tests.support.api import MAX_BODY, Api, assert_problem, opened_api, url_of
from tests.support.collab import API, Project, write
from tests.support.postgres import database_copy
from tests.support.statements import StatementCount

from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def project(api: Api) -> Project:
    name = f"p-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    return Project(api, name)


# Commits


async def test_a_commit_answers_for_every_change_in_order(project: Project) -> None:
    first = await project.commit(
        write("a.txt", "1\n"),
        {"action": "mkdir", "path": "empty"},
        {"action": "write", "path": "run.sh", "base64": base64.b64encode(b"\xff").decode(), "executable": True},
        {"action": "write", "path": "link", "text": "a.txt", "kind": "symlink"},
        message="the start",
    )
    assert first.json()["seq"] == 1
    assert [change["status"] for change in first.json()["changes"]] == ["written"] * 4
    second = await project.commit(
        {"action": "rename", "path": "a.txt", "target": "b.txt"}, {"action": "delete", "path": "link"}, base_seq=1
    )
    assert [change["result_path"] for change in second.json()["changes"]] == ["b.txt", None]
    entries = {entry["path"]: entry for entry in (await project.checkout(contents=True)).json()["entries"]}
    assert list(entries) == ["b.txt", "empty", "run.sh"]
    assert (entries["b.txt"]["text"], entries["b.txt"]["number"], entries["b.txt"]["seq"]) == ("1\n", 2, 2)
    assert (entries["run.sh"]["base64"], entries["run.sh"]["executable"]) == ("/w==", True)
    assert entries["empty"]["kind"] == "directory"


async def test_the_gate_counts_its_batches_waits_and_locks(project: Project, api: Api) -> None:
    await project.write("a.txt", "1\n")
    metrics = (await api.client.get("/metrics")).text
    for name in ("batch_requests_count", "wait_seconds_count", "lock_seconds_count"):
        [line] = [line for line in metrics.splitlines() if line.startswith(f"contextbase_gate_{name} ")]
        assert float(line.split()[1]) >= 1
    assert "contextbase_gate_lost_races_total" in metrics
    assert "contextbase_gate_replays_total" in metrics


@pytest.mark.parametrize("mime", ["文/字", "ä/b", "a/b; c=d", "a/b\n"])
async def test_a_type_that_no_header_can_name_is_refused(project: Project, mime: str) -> None:
    assert_problem(await project.commit(write("a", "1", mime=mime)), 422, "invalid_input")


async def test_a_contested_line_comes_back_as_a_conflict_object(project: Project) -> None:
    await project.write("a.txt", "1\n")
    await project.write("a.txt", "2\n", base=1)
    [change] = (await project.write("a.txt", "3\n", base=1))["changes"]
    assert change["status"] == "in_review"
    [conflict] = change["conflicts"]
    assert (conflict["reason"], conflict["ours"]["text"], conflict["theirs"]["text"]) == ("both-changed", "2\n", "3\n")
    sides = (await project.get("versions/sides", path="a.txt")).json()["side_versions"]
    assert [(side["id"], side["review_id"]) for side in sides] == [(change["side_version_id"], change["review_id"])]
    content = await project.get("versions/content", side_version_id=sides[0]["id"])
    assert content.content == b"3\n"


@pytest.mark.parametrize("way", ["body", "header"])
async def test_a_request_sent_twice_with_its_key_happens_once(project: Project, way: str) -> None:
    body = {"project": project.name, "base_seq": 0, "changes": [write("a", "1")]}
    body |= {"key": "k1"} if way == "body" else {}
    headers = {"Idempotency-Key": "k1"} if way == "header" else {}
    answers = [await project.call("POST", "commits", json=body, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["seq"] == 1
    other = await project.call("POST", "commits", json=body | {"message": "other"}, headers=headers)
    assert_problem(other, 409, "conflict")


async def test_two_keys_that_differ_are_refused(project: Project) -> None:
    body = {"project": project.name, "base_seq": 0, "changes": [write("a", "1")], "key": "x"}
    answer = await project.call("POST", "commits", json=body, headers={"Idempotency-Key": "y"})
    assert_problem(answer, 400, "invalid_input")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"changes": []}, 422),
        ({"changes": [{"action": "write", "path": "a"}]}, 422),
        ({"changes": [write("a", "1", hash="0" * 64)]}, 422),
        ({"changes": [write("a", "1")], "base_seq": None}, 422),
        ({"changes": [write("a", "1")], "base_seq": 7}, 400),
        ({"changes": [write("../a", "1")]}, 400),
        ({"changes": [write("a", "1"), write("a", "2")]}, 400),
        ({"changes": [{"action": "write", "path": "a", "base64": "!"}]}, 400),
        ({"changes": [{"action": "write", "path": "a", "hash": "0" * 64}]}, 404),
        ({"changes": [{"action": "rename", "path": "a"}]}, 400),
        ({"changes": [write("a", "1", mime="text/html\r\nX: y")]}, 422),
        ({"changes": [write("a", "1")], "message": "\x00"}, 400),
        ({"changes": [write("a", "1")], "key": "\x07"}, 400),
        ({"changes": [write("a", "1")], "operator_type": "system"}, 422),
    ],
)
async def test_a_commit_that_cannot_be_meant_is_refused_with_a_reason(
    project: Project, fields: dict[str, Any], status: int
) -> None:
    answer = await project.commit(**fields)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
    assert (await project.checkout()).json()["seq"] == 0


async def test_who_acted_and_how_comes_from_the_token_and_the_way_in(project: Project) -> None:
    await project.write("a", "by the owner's token")
    for kind in ("user", "agent", "adapter"):
        secret = await project.token(f"a-{kind}", kind=kind)
        await project.write(f"{kind}.txt", "x", who=secret)
    headers = {"Cookie": await project.api.login_cookie(), "Origin": "http://api"}
    body = {"project": project.name, "base_seq": 0, "changes": [write("page.txt", "x")]}
    answer = await project.api.stranger.post(f"{API}/commits", json=body, headers=headers)
    assert answer.status_code == 200
    commits = (await project.get("commits")).json()["commits"]
    assert [(commit["author"]["principal"], commit["author"]["operator_type"]) for commit in commits] == [
        ("user:owner", "web_ui"),
        ("adapter:a-adapter", "saas_adapter"),
        ("agent:a-agent", "external_agent"),
        ("user:a-user", "api"),
        ("user:owner", "api"),
    ]


# Uploads and contents


async def test_content_longer_than_a_request_is_uploaded_committed_by_hash_and_read_in_ranges(project: Project) -> None:
    content = bytes(range(256)) * 2048
    assert len(content) > MAX_BODY * 100
    name = hashlib.sha256(content).hexdigest()
    answer = await project.call("POST", "uploads", params={"project": project.name, "hash": name}, content=content)
    assert (answer.status_code, answer.json()) == (201, {"hash": name, "size": len(content)})
    await project.commit({"action": "write", "path": "big.bin", "hash": name})
    whole = await project.get("versions/content", path="big.bin")
    assert (whole.status_code, whole.headers["etag"], whole.content == content) == (200, f'"{name}"', True)
    assert whole.headers["content-disposition"].startswith("attachment")
    for asked, start, end in (
        ("5-9", 5, 10),
        ("524000-", 524000, 524288),
        ("-3", 524285, 524288),
        ("9-600000", 9, 524288),
    ):
        part = await project.call(
            "GET",
            "versions/content",
            params={"project": project.name, "path": "big.bin"},
            headers={"Range": f"bytes={asked}"},
        )
        assert (part.status_code, part.content == content[start:end]) == (206, True)
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/524288"
    beyond = await project.call(
        "GET",
        "versions/content",
        params={"project": project.name, "path": "big.bin"},
        headers={"Range": "bytes=524288-"},
    )
    assert_problem(beyond, 416, "invalid_input")
    assert beyond.headers["content-range"] == "bytes */524288"


async def test_a_range_of_another_content_than_the_one_begun_is_answered_whole(project: Project) -> None:
    await project.write("a", "0123456789")
    headers = {"Range": "bytes=2-3", "If-Range": '"somethingelse"'}
    answer = await project.call(
        "GET", "versions/content", params={"project": project.name, "path": "a"}, headers=headers
    )
    assert (answer.status_code, answer.text) == (200, "0123456789")


async def test_an_upload_that_is_not_what_was_promised_stores_nothing(project: Project) -> None:
    answer = await project.call("POST", "uploads", params={"project": project.name, "hash": "0" * 64}, content=b"x")
    assert_problem(answer, 400, "invalid_input")


async def test_an_upload_that_breaks_off_stores_nothing_and_is_no_failure_of_the_server(
    project: Project, api: Api, log: list[tuple[str, logging.LogRecord]]
) -> None:
    pieces: list[Message] = [
        {"type": "http.request", "body": b"the first half", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return pieces.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": f"{API}/uploads", "client": ("127.0.0.1", 1),
        "query_string": f"project={project.name}".encode(),
        "headers": [(b"authorization", f"Bearer {api.owner_secret}".encode())],
    }  # fmt: skip
    await api.app(scope, receive, send)
    await asyncio.sleep(0)
    assert sent == []
    assert [record.getMessage() for _, record in log if record.levelno >= logging.ERROR] == []
    change = {"action": "write", "path": "a", "hash": hashlib.sha256(b"the first half").hexdigest()}
    assert_problem(await project.commit(change), 404, "not_found")


async def test_an_upload_over_its_own_limit_is_refused_declared_or_not(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async def undeclared() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * 1024

    async with database_copy(embedded_database_server, "template0") as address:
        settings = Settings(data=tmp_path, database_url=url_of(address), max_upload_bytes=4096, max_request_bytes=1024)
        async with opened_api(settings) as api:
            await api.client.post("/api/v1/projects", json={"name": "p"})
            for content, status in ((b"x" * 4096, 201), (b"x" * 4097, 413), (undeclared(), 413)):
                answer = await api.client.post(f"{API}/uploads", params={"project": "p"}, content=content)
                assert answer.status_code == status, answer.text


async def test_a_stranger_s_upload_cannot_be_named(project: Project) -> None:
    mine, other = await project.token("mine"), await project.token("other")
    answer = await project.call("POST", "uploads", mine, params={"project": project.name}, content=b"secret")
    change = {"action": "write", "path": "stolen", "hash": answer.json()["hash"]}
    assert_problem(await project.commit(change, who=other), 404, "not_found")
    assert (await project.commit(change, who=mine)).status_code == 200


# Checkouts


async def test_a_checkout_reads_any_snapshot_by_path_prefix_or_folder(project: Project) -> None:
    await project.commit(write("docs/a.md", "1"), write("docs/deep/b.md", "1"), write("z", "1"))
    await project.write("docs/a.md", "2", base=1)
    assert await project.paths() == ["docs/a.md", "docs/deep/b.md", "z"]
    assert await project.paths(prefix="docs") == ["docs/a.md", "docs/deep/b.md"]
    assert await project.paths(recursive=False) == ["docs", "z"]
    assert await project.paths(prefix="docs", recursive=False) == ["docs/a.md", "docs/deep"]
    old = (await project.checkout(paths=["docs/a.md", "nowhere"], seq=1, contents=True)).json()
    assert (old["seq"], old["entries"][0]["text"], old["missing"]) == (1, "1", ["nowhere"])
    assert_problem(await project.checkout(seq=3), 400, "invalid_input")


@pytest.mark.parametrize("recursive", [True, False])
async def test_pages_of_a_checkout_hold_every_entry_once(project: Project, recursive: bool) -> None:
    names = ["a", "a-b", "a.txt", "d/x", "d/y", "d-e", "d0", "e/f/g", "é"]
    await project.commit(*(write(name, "1") for name in names))
    seen: list[str] = []
    after = ""
    for _ in range(20):
        page = (await project.checkout(recursive=recursive, limit=2, after=after)).json()
        seen += [entry["path"] for entry in page["entries"]]
        after = page["next_after"]
        if after is None:
            break
    expected = names if recursive else {name.split("/")[0] for name in names}
    assert sorted(seen) == sorted(expected)


async def test_contents_beyond_the_bound_come_by_reference(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextbase.reads.service.MOST_INLINE_BYTES", 10)
    await project.commit(write("a", "12345678"), write("b", "12345678"), write("c", "12"))
    entries = (await project.checkout(contents=True)).json()["entries"]
    assert [entry["text"] for entry in entries] == ["12345678", None, "12"]
    assert entries[1]["hash"] == hashlib.sha256(b"12345678").hexdigest()


async def test_a_snapshot_with_a_purged_file_still_has_the_contents_of_the_others(project: Project, api: Api) -> None:
    leaked = f"leaked {project.name}"
    await project.commit(write("key.txt", leaked), write("plan.txt", "1"))
    purge = {"project": project.name, "path": "key.txt", "confirm": project.name}
    assert (await api.client.post("/api/v1/history/purge", json=purge)).status_code == 200
    for asked in ({}, {"paths": ["key.txt", "plan.txt"]}):
        entries = (await project.checkout(seq=1, contents=True, **asked)).json()["entries"]
        assert [(entry["path"], entry["text"]) for entry in entries] == [("key.txt", None), ("plan.txt", "1")]
    assert_problem(await project.get("versions/content", path="key.txt", seq=1), 410, "content_purged")


# Versions and the log


async def test_versions_and_log_of_a_path_follow_its_renames(project: Project) -> None:
    await project.write("a", "1")
    await project.write("a", "2", base=1)
    await project.commit({"action": "rename", "path": "a", "target": "b"}, base_seq=2)
    await project.write("other", "x")
    versions = (await project.get("versions", path="b")).json()["versions"]
    assert [(version["number"], version["path"]) for version in versions] == [(3, "b"), (2, "a"), (1, "a")]
    old = await project.get("versions/content", node_id=versions[-1]["node_id"], number=1)
    assert old.text == "1"
    commits = (await project.get("commits", path="b")).json()["commits"]
    assert [(commit["seq"], commit["changes"][0]["what"]) for commit in commits] == [
        (3, "renamed"), (2, "changed"), (1, "added"),
    ]  # fmt: skip
    assert commits[0]["changes"][0]["path_before"] == "a"
    page = (await project.get("versions", path="b", limit=2)).json()
    assert page["next_before"] == 2
    rest = (await project.get("versions", path="b", before=2)).json()
    assert [version["number"] for version in rest["versions"]] == [1]


async def test_a_deleted_file_keeps_its_history(project: Project) -> None:
    await project.write("a", "1")
    await project.commit({"action": "delete", "path": "a"}, base_seq=1)
    versions = (await project.get("versions", path="a")).json()["versions"]
    assert [version["kind"] for version in versions] == ["deleted", "file"]
    assert_problem(await project.get("versions/content", path="a"), 404, "not_found")
    assert (await project.get("versions/content", path="a", seq=1)).text == "1"


async def test_a_message_is_only_for_those_who_may_see_all_of_its_commit(project: Project) -> None:
    bot = await project.token("half-blind")
    await project.rule("agent:half-blind", "secret/**", "hidden")
    await project.commit(write("a", "1\n"), write("secret/x", "1"), message="with secret/x")
    await project.commit(write("a", "2\n"), base_seq=1, message="all to see")
    await project.commit(write("a", "3\n"), write("secret/y", "1"), base_seq=1, message="with secret/y")
    await project.commit({"action": "rename", "path": "secret/x", "target": "x"}, base_seq=3, message="from secret/x")

    async def messages(route: str, key: str, who: str | None, **query: Any) -> list[str]:
        found = (await project.get(route, who, **query)).json()[key]
        return [entry["author"]["message"] for entry in found]

    for route, key, query, told, told_all in (
        (
            "commits",
            "commits",
            {},
            ["", "", "all to see", ""],
            ["from secret/x", "with secret/y", "all to see", "with secret/x"],
        ),
        ("commits", "commits", {"path": "a"}, ["", "all to see", ""], ["with secret/y", "all to see", "with secret/x"]),
        ("versions", "versions", {"path": "a"}, ["all to see", ""], ["all to see", "with secret/x"]),
        ("versions/sides", "side_versions", {"path": "a"}, [""], ["with secret/y"]),
    ):
        assert await messages(route, key, bot, **query) == told, (route, query)
        assert await messages(route, key, None, **query) == told_all, (route, query)
    feed = (await project.get("feed", bot, after="start", path="a")).json()["items"]
    assert {item["seq"]: item["message"] for item in feed} == {1: "", 2: "all to see", 3: ""}


async def test_the_log_of_a_principal_is_paged_by_seq(project: Project) -> None:
    bot = await project.token("log-bot")
    for number in range(4):
        await project.write(f"f{number}", "x", who=bot if number % 2 else None)
    first = (await project.get("commits", principal="agent:log-bot", limit=1)).json()
    assert [commit["seq"] for commit in first["commits"]] == [4]
    rest = (await project.get("commits", principal="log-bot", before=first["next_before"])).json()
    assert ([commit["seq"] for commit in rest["commits"]], rest["next_before"]) == ([2], None)
    assert (await project.get("commits", principal="nobody")).json() == {"commits": [], "next_before": None}


# What is hidden does not exist


async def test_nothing_tells_of_a_hidden_path(project: Project) -> None:
    await project.write("public.txt", "1")
    await project.write("secret/plan.txt", "the plan", base=1)
    await project.commit(write("both.txt", "1"), write("secret/more.txt", "1"), base_seq=2)
    await project.rule("everyone", "secret/**", "hidden")
    bot = await project.token("curious")
    node = (await project.get("versions", path="secret/plan.txt")).json()["versions"][0]["node_id"]
    assert await project.paths(bot) == ["both.txt", "public.txt"]
    assert await project.paths(bot, recursive=False) == ["both.txt", "public.txt"]
    asked = (await project.checkout(bot, paths=["secret/plan.txt", "secret/none.txt"])).json()
    assert (asked["entries"], asked["missing"]) == ([], ["secret/plan.txt", "secret/none.txt"])
    for route, query in (
        ("versions", {"path": "secret/{}.txt"}),
        ("versions/sides", {"path": "secret/{}.txt"}),
        ("versions/content", {"path": "secret/{}.txt"}),
        ("commits", {"path": "secret/{}.txt"}),
    ):
        there, not_there = [
            await project.get(route, bot, **{key: value.format(name) for key, value in query.items()})
            for name in ("plan", "none")
        ]
        assert_problem(there, 404, "not_found")
        assert there.json()["detail"].replace("plan", "none") == not_there.json()["detail"]
    content = await project.get("versions/content", bot, node_id=node, number=1)
    assert_problem(content, 404, "not_found")
    commits = (await project.get("commits", bot)).json()["commits"]
    assert [(commit["seq"], commit["change_count"]) for commit in commits] == [(3, 1), (1, 1)]
    assert "secret" not in json.dumps(commits)
    change = {"action": "write", "path": "copy", "hash": hashlib.sha256(b"the plan").hexdigest()}
    assert_problem(await project.commit(change, who=bot), 404, "not_found")


async def test_a_file_moved_to_a_hidden_place_takes_its_history_along(project: Project) -> None:
    await project.write("open.txt", "1")
    await project.commit({"action": "rename", "path": "open.txt", "target": "secret/s.txt"}, base_seq=1)
    await project.rule("everyone", "secret/**", "hidden")
    bot = await project.token("historian")
    assert await project.paths(bot, seq=1) == []
    assert_problem(await project.get("versions/content", bot, path="open.txt", seq=1), 404, "not_found")
    assert_problem(await project.get("versions", bot, path="open.txt"), 404, "not_found")
    assert (await project.get("commits", bot)).json()["commits"] == []


async def test_an_answer_given_again_shows_what_this_token_may_see_now(project: Project) -> None:
    await project.write("keys/pin", "none\n")
    await project.write("keys/pin", "the pin is 1234\n", base=1)
    whole, part = await project.token("forgetful"), await project.token("forgetful", path="docs")
    asked = (write("keys/pin", "x\n"), write("docs/a", "1"))

    async def sent(who: str) -> list[dict[str, Any]]:
        changes: list[dict[str, Any]] = (await project.commit(*asked, who=who, base_seq=1, key="k")).json()["changes"]
        return changes

    first = await sent(whole)
    assert first[0]["conflicts"][0]["ours"]["text"] == "the pin is 1234\n"
    assert await sent(whole) == first
    pin, other = await sent(part)
    assert (pin["status"], pin["conflicts"], pin["review_id"]) == ("in_review", [], None)
    assert other == first[1]
    await project.rule("agent:forgetful", "keys/**", "hidden")
    assert await sent(whole) == [pin, other]


async def test_the_size_of_a_project_is_for_who_may_see_everything_in_it(project: Project, api: Api) -> None:
    await project.write("secret/s.txt", "1234")
    who = {
        "all": await project.token("sees-all"),
        "a folder": await project.token("sees-a-folder", path="open"),
        "not all": await project.token("sees-not-all"),
    }
    await project.rule("agent:sees-not-all", "secret/**", "hidden")
    sizes = ("files", "bytes", "versions", "stored_bytes")
    shown = {}
    for name, secret in who.items():
        answer = await api.client.get(f"/api/v1/projects/{project.name}", headers=api.as_bearer(secret))
        shown[name] = [answer.json()[size] for size in sizes]
    assert shown == {"all": [1, 4, 1, 4], "a folder": [None] * 4, "not all": [None] * 4}


async def test_the_log_of_what_was_moved_to_a_hidden_place_is_that_of_a_path_without_anything(project: Project) -> None:
    await project.write("open.txt", "1")
    await project.commit({"action": "rename", "path": "open.txt", "target": "secret/s.txt"}, base_seq=1)
    await project.rule("everyone", "secret/**", "hidden")
    bot = await project.token("log-reader")
    for filters in ({}, {"principal": "owner"}):
        moved, nothing = [await project.get("commits", bot, path=path, **filters) for path in ("open.txt", "shut.txt")]
        assert_problem(moved, 404, "not_found")
        assert moved.json()["detail"].replace("open", "shut") == nothing.json()["detail"]


async def test_a_file_moved_out_of_a_hidden_place_does_not_say_where_it_was(project: Project) -> None:
    await project.write("secret/s.txt", "1")
    await project.commit({"action": "rename", "path": "secret/s.txt", "target": "open.txt"}, base_seq=1)
    await project.rule("everyone", "secret/**", "hidden")
    bot = await project.token("finder")
    [version] = (await project.get("versions", bot, path="open.txt")).json()["versions"]
    assert (version["number"], version["path"]) == (2, "open.txt")
    [commit] = (await project.get("commits", bot)).json()["commits"]
    assert (commit["changes"][0]["what"], commit["changes"][0]["path_before"]) == ("added", None)
    assert_problem(await project.get("versions/content", bot, node_id=version["node_id"], number=1), 404, "not_found")


async def test_a_token_for_a_folder_sees_and_writes_nothing_else(project: Project) -> None:
    names = ("mine/a", "mine/in/b", "mine.txt", "mine-too/c", "other/d")
    await project.commit(*(write(name, "1") for name in names))
    secret = await project.token("folder-bot", path="mine/in")
    assert await project.paths(secret) == ["mine/in/b"]
    assert await project.paths(secret, prefix="mine/in") == ["mine/in/b"]
    assert await project.paths(secret, prefix="other") == []
    assert await project.paths(secret, recursive=False) == ["mine"]
    assert await project.paths(secret, prefix="mine", recursive=False) == ["mine/in"]
    [refused] = (await project.write("other/c", "1", base=1, who=secret))["changes"]
    assert (refused["status"], refused["code"]) == ("refused", "forbidden")


# Policies


async def test_rules_are_put_listed_explained_and_removed(project: Project) -> None:
    await project.token("ruled")
    await project.rule("everyone", "docs/**", "R")
    await project.rule("ruled", "docs/drafts/**", "RW-")
    explained = (await project.get("policies/explain", path="docs/drafts/x", principal="ruled")).json()
    assert (explained["level"], explained["rule"]["subject"], explained["principal"]) == (
        "RW-", "agent:ruled", "agent:ruled",
    )  # fmt: skip
    assert "docs/drafts/**" in explained["reason"]
    policy = (await project.get("policies")).json()
    assert {(rule["subject"], rule["pattern"], rule["level"]) for rule in policy["rules"]} == {
        ("everyone", "docs/**", "R"),
        ("agent:ruled", "docs/drafts/**", "RW-"),
    }
    query = {"project": project.name, "subject": "agent:ruled", "pattern": "docs/drafts/**"}
    assert (await project.call("DELETE", "policies/rules", params=query)).status_code == 204
    assert_problem(await project.call("DELETE", "policies/rules", params=query), 404, "not_found")
    assert (await project.get("policies")).json()["version"] == policy["version"] + 1
    explained = (await project.get("policies/explain", path="docs/drafts/x", principal="ruled")).json()
    assert explained["level"] == "R"


async def test_a_groups_rule_holds_for_its_members_from_the_moment_they_join(project: Project) -> None:
    secret, group = await project.token("joiner"), f"g-{uuid4().hex[:8]}"
    assert (await project.call("POST", "groups", json={"name": group})).status_code == 201
    assert_problem(await project.call("POST", "groups", json={"name": group}), 409, "conflict")
    await project.rule(f"group:{group}", "**", "R")
    version = (await project.get("policies")).json()["version"]
    assert (await project.write("a", "1", who=secret))["changes"][0]["status"] == "written"
    member = f"groups/{group}/members/agent:joiner"
    assert (await project.call("PUT", member)).json()["member"] is True
    assert (await project.get("policies")).json()["version"] == version + 1
    assert (await project.write("a", "2", base=1, who=secret))["changes"][0]["status"] == "refused"
    groups = (await project.call("GET", "groups", params={"limit": 1000})).json()["groups"]
    assert {"name": group, "members": ["agent:joiner"]} in groups
    assert (await project.call("DELETE", member)).json()["member"] is False
    assert (await project.write("a", "2", base=1, who=secret))["changes"][0]["status"] == "written"


async def test_merge_rules_and_ranks_decide_conflicts(project: Project) -> None:
    low, high = await project.token("low"), await project.token("high")
    rules = [{"pattern": "*.cfg", "strategy": "priority"}, {"pattern": "LICENSE", "strategy": "critical"}]
    policy = (await project.call("PUT", "policies/merge-rules", json={"project": project.name, "rules": rules})).json()
    assert policy["merge_rules"] == rules
    rank = {"project": project.name, "principal": "agent:high", "rank": 5}
    assert (await project.call("PUT", "policies/ranks", json=rank)).status_code == 200
    await project.write("a.cfg", "0\n")
    await project.write("a.cfg", "high\n", base=1, who=high)
    assert (await project.write("a.cfg", "low\n", base=1, who=low))["changes"][0]["status"] == "superseded"
    await project.write("LICENSE", "1\n", base=2)
    assert (await project.write("LICENSE", "2\n", base=3, who=low))["changes"][0]["status"] == "in_review"
    assert (await project.get("policies")).json()["ranks"] == [{"principal": "agent:high", "rank": 5}]


async def test_the_owner_cannot_be_locked_out(project: Project) -> None:
    body = {"project": project.name, "level": "hidden"}
    assert (await project.call("PUT", "policies/default", json=body)).json()["default_level"] == "hidden"
    await project.rule("everyone", "**", "hidden")
    assert (await project.write("a", "1"))["changes"][0]["status"] == "written"
    assert await project.paths() == ["a"]
    rule = {"project": project.name, "subject": "user:owner", "pattern": "**", "level": "hidden"}
    assert_problem(await project.call("PUT", "policies/rules", json=rule), 400, "invalid_input")


@pytest.mark.parametrize(
    ("route", "body", "status"),
    [
        ("rules", {"subject": "everyone", "pattern": "a", "level": "rw"}, 422),
        ("rules", {"subject": "everyone", "pattern": "../a", "level": "R"}, 400),
        ("rules", {"subject": "everyone", "pattern": "", "level": "R"}, 400),
        ("rules", {"subject": "agent:nobody-here", "pattern": "a", "level": "R"}, 404),
        ("rules", {"subject": "group:nobody-here", "pattern": "a", "level": "R"}, 404),
        ("rules", {"subject": "robot:x", "pattern": "a", "level": "R"}, 400),
        ("merge-rules", {"rules": [{"pattern": "a", "strategy": "coin"}]}, 422),
        ("merge-rules", {"rules": [{"pattern": "a", "strategy": "auto"}, {"pattern": "a", "strategy": "ours"}]}, 400),
        ("ranks", {"principal": "agent:nobody-here", "rank": 1}, 404),
        ("default", {"level": "none"}, 422),
    ],
)
async def test_a_policy_that_cannot_be_meant_changes_nothing(
    project: Project, route: str, body: dict[str, Any], status: int
) -> None:
    before = (await project.get("policies")).json()
    answer = await project.call("PUT", f"policies/{route}", json={"project": project.name} | body)
    assert answer.status_code == status, answer.text
    assert (await project.get("policies")).json() == before


# Audit


async def test_the_audit_trail_is_filtered_paged_and_exported(project: Project) -> None:
    bot = await project.token("audited")
    await project.write("a/1", "x")
    await project.commit(write("a/2", "x"), write("b/1", "x"), base_seq=1, who=bot)
    await project.rule("everyone", "x/**", "R")
    records = (await project.get("audit")).json()["records"]
    assert [record["action"] for record in records] == ["policy.rule.put", "commit", "commit", "project.create"]
    assert [record["number"] for record in records] == [4, 3, 2, 1]

    async def numbers(**query: Any) -> list[int]:
        return [record["number"] for record in (await project.get("audit", **query)).json()["records"]]

    assert await numbers(action="commit") == [3, 2]
    assert await numbers(principal="agent:audited") == [3]
    assert await numbers(path="a") == [3, 2]
    assert await numbers(path="b/1") == [3]
    assert await numbers(first_seq=2, last_seq=2) == [3]
    assert await numbers(since=records[1]["at"], until=records[0]["at"]) in ([3], [3, 2])
    assert await numbers(limit=2) == [4, 3]
    assert await numbers(limit=2, before=3) == [2, 1]
    exported = await project.get("audit/export")
    assert exported.headers["content-type"].startswith("application/jsonl")
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert lines == records[::-1]
    assert all(len(line["mac"]) == 64 for line in lines)


async def test_the_audit_row_of_a_rename_names_its_target_and_is_found_by_it(project: Project) -> None:
    await project.write("a", "x")
    await project.commit({"action": "rename", "path": "a", "target": "b"}, base_seq=1)
    await project.commit({"action": "rename", "path": "b", "target": "c"}, write("d", "x"), base_seq=2)
    await project.commit({"action": "rename", "path": "nothing", "target": "e"}, base_seq=3)
    refused, several, renamed, _ = (await project.get("audit", action="commit")).json()["records"]
    assert (renamed["path"], renamed["details"]) == ("a", {"target": "b", "result_path": "b"})
    [moved] = [change for change in several["details"]["changes"] if change["action"] == "rename"]
    assert (moved["path"], moved["target"], moved["result_path"]) == ("b", "c", "c")
    assert (refused["path"], refused["details"]) == ("nothing", {"target": "e"})
    for path, row in (("b", renamed), ("c", several), ("e", refused)):
        assert row in (await project.get("audit", path=path)).json()["records"]
    assert renamed not in (await project.get("audit", path="c")).json()["records"]


async def test_the_audit_row_of_a_commit_of_several_changes_names_the_refused_ones(project: Project) -> None:
    bot = await project.token("limited")
    await project.rule("agent:limited", "shut/**", "R")
    await project.commit(write("open", "x"), write("shut/a", "x"), who=bot)
    await project.commit(write("open-2", "x"), write("shut/a", "x"), who=bot, atomic=True)
    undone, part = (await project.get("audit", path="shut/a")).json()["records"]
    statuses = [{change["path"]: change["status"] for change in row["details"]["changes"]} for row in (part, undone)]
    assert statuses == [{"open": "written", "shut/a": "refused"}, {"open-2": "refused", "shut/a": "refused"}]


async def test_the_audit_row_of_a_rename_is_not_shown_to_whom_its_target_is_hidden(project: Project) -> None:
    admin = await project.token("aside", actions=["read", "admin"])
    await project.write("a", "x")
    await project.commit({"action": "rename", "path": "a", "target": "secret/b"}, base_seq=1)
    await project.commit({"action": "rename", "path": "secret/b", "target": "c"}, base_seq=2)
    await project.rule("agent:aside", "secret/**", "hidden")
    told = (await project.get("audit", admin, action="commit")).text
    assert '"seq":1' in told
    assert "secret" not in told


async def test_an_administrator_is_not_shown_what_is_hidden_from_it(project: Project) -> None:
    admin = await project.token("deputy", actions=["read", "admin"])
    await project.write("secret/a", "x")
    await project.commit(write("open", "x"), write("secret/b", "x"), base_seq=1)
    await project.rule("agent:deputy", "secret/**", "hidden")
    records = (await project.get("audit", admin, action="commit")).json()["records"]
    assert [(record["seq"], record["mac"]) for record in records] == [(2, None)]
    assert "secret" not in json.dumps(records)
    assert "2 changes" not in records[0]["summary"]
    lines = (await project.get("audit/export", admin, action="commit")).text.splitlines()
    assert [json.loads(line) for line in lines] == records


# However long the history is


async def test_a_long_log_is_read_in_pages_however_much_of_it_is_hidden(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        await project.write(f"{'open' if number % 6 == 0 else 'secret'}/{number}", "x")
    await project.rule("everyone", "secret/**", "hidden")
    bot = await project.token("patient")
    monkeypatch.setattr("contextbase.reads.commit_log._PAGE", 2)
    monkeypatch.setattr("contextbase.reads.commit_log._MOST_SCANNED", 3)

    async def seqs(who: str | None, limit: int) -> list[int]:
        seen: list[int] = []
        before: dict[str, int] = {}
        for _ in range(20):
            page = (await project.get("commits", who, limit=limit, **before)).json()
            seen += [commit["seq"] for commit in page["commits"]]
            if page["next_before"] is None:
                return seen
            before = {"before": page["next_before"]}
        raise AssertionError("the log does not end")

    assert await seqs(None, 5) == list(range(12, 0, -1))
    assert await seqs(bot, 1) == [7, 1]


async def test_a_checkout_asks_the_database_as_much_however_much_is_hidden(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await project.commit(*(write(f"full/{number}/{name}", "x") for name in range(10)))
    await project.commit(write("full-not", "x"), write("z", "x"))
    for folder in ("full", "void"):
        await project.rule("everyone", f"{folder}/**", "hidden")
    bot = await project.token("unhurried")
    monkeypatch.setattr("contextbase.reads.service._PAGE", 2)
    database = StatementCount(monkeypatch)
    counts: dict[tuple[str, bool], int] = {}
    for folder in ("first", "full", "void"):  # the first finds less at hand than the others
        for recursive in (True, False):
            database.asked = 0
            assert await project.paths(bot, prefix=folder, recursive=recursive, limit=1) == []
            counts[folder, recursive] = database.asked
    assert counts["full", True] == counts["void", True]
    assert counts["full", False] == counts["void", False]
    assert await project.paths(bot, recursive=False, limit=10) == ["full-not", "z"]
    database.asked = 0
    assert await project.paths(bot, limit=3) == ["full-not", "z"]
    assert database.asked <= 5  # the project; what comes up to the hidden folder and into it, and what comes after it


async def test_commits_with_more_changes_than_one_reading_holds_are_told_whole(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    await project.commit(*(write(f"a{number}", "x") for number in range(5)))
    await project.commit(*(write(f"b{number}", "x") for number in range(5)), base_seq=1)
    monkeypatch.setattr("contextbase.reads.commit_log._MOST_ROWS", 7)
    monkeypatch.setattr("contextbase.reads.commit_log.MOST_CHANGES_SHOWN", 3)
    commits = (await project.get("commits")).json()["commits"]
    assert [(commit["seq"], commit["change_count"], len(commit["changes"])) for commit in commits] == [
        (2, 5, 3),
        (1, 5, 3),
    ]


async def test_a_long_audit_trail_is_read_and_exported_in_portions(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        await project.write(f"f{number}", "x")
    monkeypatch.setattr("contextbase.reads.audit_search._PAGE", 2)
    assert [record["number"] for record in (await project.get("audit")).json()["records"]] == [7, 6, 5, 4, 3, 2, 1]
    assert len((await project.get("audit/export")).text.splitlines()) == 7
    monkeypatch.setattr("contextbase.reads.audit_search._MOST_SCANNED", 3)
    page = (await project.get("audit", principal="nobody")).json()
    assert page == {"records": [], "next_before": None}
    page = (await project.get("audit", limit=2)).json()
    assert page["next_before"] == 6


async def test_after_all_this_fsck_finds_nothing(project: Project) -> None:
    problems = [step.problem async for step in project.api.services.fsck.run() if step.problem]
    assert problems == []


async def test_a_files_type_is_that_of_its_content_however_it_came(project: Project) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + b"\x00" * 400_000  # too long for the database: it is in the blob store
    query = {"project": project.name}
    uploaded = (await project.call("POST", "uploads", params=query, content=picture)).json()
    small = base64.b64encode(picture[:100]).decode()
    changes = [
        {"action": "write", "path": "typed/large.txt", "hash": uploaded["hash"], "base": 0},
        {"action": "write", "path": "typed/small.txt", "base64": small, "base": 0},
        write("typed/script", "echo\n", base=0),
        write("typed/own", "echo\n", base=0, mime="text/x-shellscript"),
    ]
    made = (await project.commit(*changes)).json()
    moved = {"action": "rename", "path": "typed/large.txt", "target": "typed/moved.txt", "base": made["seq"]}
    assert (await project.commit(moved)).status_code == 200
    entries = (await project.checkout(prefix="typed")).json()["entries"]
    assert {entry["path"].removeprefix("typed/"): entry["mime"] for entry in entries} == {
        "moved.txt": "image/png",
        "small.txt": "image/png",
        "script": "text/plain",
        "own": "text/x-shellscript",
    }
