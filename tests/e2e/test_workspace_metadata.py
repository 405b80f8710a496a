"""A workspace made with `meta`: what is known about its files, as JSON that can be read and nothing else."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.cli import Cli
from tests.support.server import ServerProcess

from contextbase.sdk import Client, Conflict, Forbidden, InvalidInput, NotFound


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url, (server.data / "owner-token").read_text().strip()) as opened:
        yield opened


@pytest.fixture
def project(client: Client) -> Iterator[str]:
    name = f"m-{uuid4().hex[:12]}"
    client.projects.create(name)
    client.files.write(name, "docs/plan.md", b"# Plan\n", message_id="m-0")
    assert client.workspaces.create(name, meta=True).meta
    yield name
    client.workspaces.abandon(name)


def document(client: Client, project: str, path: str) -> dict[str, Any]:
    whole = b"".join(client.files.download(project, path, workspace="me"))
    found: dict[str, Any] = json.loads(whole)
    return found


def names(client: Client, project: str, folder: str | None = None) -> list[str]:
    return [entry.name for entry in client.files.list(project, folder, workspace="me").entries]


def test_each_file_has_a_document_that_is_true_after_a_change(client: Client, project: str) -> None:
    given = document(client, project, ".meta/docs/plan.md")
    assert (given["path"], given["kind"], given["size"], given["mime"]) == ("docs/plan.md", "file", 7, "text/markdown")
    assert given["hash"] == client.files.details(project, "docs/plan.md", workspace="me").hash
    assert (given["last_change"]["by"], given["last_change"]["message_id"]) == ("user:owner", "m-0")

    written = client.files.write(project, "docs/plan.md", b"# Other\n", workspace="me", message_id="m-1")
    after = document(client, project, ".meta/docs/plan.md")
    assert (after["size"], after["hash"], after["message_ids"]) == (8, written.new_hash, ["m-1"])
    assert (after["last_change"]["action"], after["last_change"]["message_id"]) == ("write", "m-1")


def test_nobody_is_named_for_what_a_program_did_until_a_sync(client: Client, project: str) -> None:
    folder = Path(client.workspaces.get(project).path)
    (folder / "docs/plan.md").write_text("by a program\n")
    assert document(client, project, ".meta/docs/plan.md")["last_change"] is None
    assert document(client, project, ".meta/.meta")["lastSync"] is None
    client.files.sync(project, workspace="me")
    assert document(client, project, ".meta/docs/plan.md")["last_change"]["operator_type"] == "external"
    assert document(client, project, ".meta/.meta")["lastSync"] is not None


def test_the_place_has_a_document_with_its_sums_and_entries(client: Client, project: str) -> None:
    client.files.write(project, "new.csv", b"a,b\n", workspace="me")
    found = document(client, project, ".meta/.meta")
    assert (found["files"], found["folders"], found["diskUsage"], found["entries_left_off"]) == (2, 1, 11, 0)
    assert found["workspace"] == str(client.workspaces.get(project).id)
    assert [(one["path"], one["kind"], one["size"]) for one in found["entries"]] == [
        ("new.csv", "file", 4),
        ("docs", "directory", 0),
        ("docs/plan.md", "file", 7),
    ]


def test_metadata_are_listed_as_the_files_are(client: Client, project: str) -> None:
    assert names(client, project) == [".meta", "docs"]
    assert names(client, project, ".meta") == [".meta", "docs"]
    assert names(client, project, ".meta/docs") == ["plan.md"]
    assert client.files.details(project, ".meta/docs", workspace="me").kind == "directory"
    part = client.files.read(project, ".meta/docs/plan.md", workspace="me")
    assert (part.mime, json.loads(part.content)["path"]) == ("application/json", "docs/plan.md")
    for path in (".meta/none.md", ".meta/.meta/x", ".meta/.meta/docs/plan.md"):
        with pytest.raises(NotFound):
            client.files.read(project, path, workspace="me")
    with pytest.raises(InvalidInput):
        client.files.read(project, ".meta/docs", workspace="me")


@pytest.mark.parametrize(
    "change",
    [
        lambda files, name: files.write(name, ".meta/docs/plan.md", b"x", workspace="me"),
        lambda files, name: files.write(name, ".meta/other", b"x", workspace="me"),
        lambda files, name: files.delete(name, ".meta/docs/plan.md", workspace="me"),
        lambda files, name: files.delete(name, ".meta", workspace="me", recursive=True),
        lambda files, name: files.rename(name, ".meta/.meta", "a", workspace="me"),
        lambda files, name: files.rename(name, "docs/plan.md", ".meta/a", workspace="me"),
        lambda files, name: files.make_folder(name, ".meta/folder", workspace="me"),
        lambda files, name: files.upload(name, b"x", name="a", folder=".meta", workspace="me"),
    ],
    ids=["write", "add", "delete", "delete all", "move away", "move in", "folder", "upload"],
)
def test_metadata_cannot_be_changed(client: Client, project: str, change: Callable[[Any, str], Any]) -> None:
    with pytest.raises(Forbidden):
        change(client.files, project)
    assert not client.workspaces.status(project).changes


def test_metadata_are_never_committed_found_or_on_the_disk(client: Client, project: str) -> None:
    client.files.write(project, "new.txt", b"unusualword\n", workspace="me")
    document(client, project, ".meta/new.txt")
    assert not (Path(client.workspaces.get(project).path) / ".meta").exists()
    assert [change.path for change in client.workspaces.status(project).changes] == ["new.txt"]
    for word, found in (("unusualword", ["new.txt"]), ("last_change", [])):
        page = client.search.grep(project, word, workspace="me")
        assert [one.path for one in page.files] == found
    assert client.files.info(project, workspace="me").files == 2
    client.workspaces.commit(project)
    assert [entry.name for entry in client.files.list(project).entries] == ["docs", "new.txt"]
    with pytest.raises(NotFound):
        client.files.read(project, ".meta/.meta")


def test_tools_read_metadata_but_cannot_change_them(project: str, server: ServerProcess) -> None:
    secret = (server.data / "owner-token").read_text().strip()
    headers = {"Authorization": f"Bearer {secret}"}

    def called(tool: str, **arguments: str) -> httpx.Response:
        return httpx.post(
            f"{server.url}/api/v1/tools/{tool}",
            headers=headers,
            params={"project": project},
            json={"arguments": arguments},
        )

    assert json.loads(called("read_file", path=".meta/docs/plan.md").json()["text"])["path"] == "docs/plan.md"
    assert "plan.md" in called("list_files", subDir=".meta/docs").json()["text"]
    for refused in (
        called("write_file", path=".meta/docs/plan.md", content="x"),
        called("edit_file", path=".meta/docs/plan.md", old="plan", new="x"),
        called("delete_file", path=".meta/docs/plan.md"),
    ):
        assert refused.json()["code"] == "forbidden", refused.text


def test_a_workspace_without_metadata_shows_none_and_is_not_taken_for_one_with_them(client: Client) -> None:
    name = f"m-{uuid4().hex[:12]}"
    client.projects.create(name)
    assert not client.workspaces.create(name).meta
    with pytest.raises(NotFound):
        client.files.read(name, ".meta/.meta", workspace="me")
    client.files.write(name, ".meta/own", b"a file like any other", workspace="me")
    assert names(client, name, ".meta") == ["own"]
    with pytest.raises(Conflict):
        client.workspaces.create(name, meta=True)


def test_the_command_makes_a_workspace_with_metadata(cb: Cli) -> None:
    assert cb("workspace", "create", "--meta", "--json").json["meta"] is True
    assert json.loads(cb("cat", ".meta/.meta", "--workspace", "me").stdout)["files"] == 0
