"""`client.files` against a real server: what the commands do not show."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from tests.support.server import ServerProcess

from contextbase.sdk import AsyncClient, Client, InvalidInput, InvalidPath, PreconditionFailed


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url, (server.data / "owner-token").read_text().strip()) as opened:
        yield opened


@pytest.fixture(params=[None, "me"], ids=["project", "workspace"])
def place(request: pytest.FixtureRequest, client: Client) -> tuple[str, str | None]:
    project = f"s-{uuid4().hex[:12]}"
    client.projects.create(project)
    client.workspaces.create(project)
    return project, request.param


def test_a_change_can_be_bound_to_what_was_seen(client: Client, place: tuple[str, str | None]) -> None:
    project, workspace = place
    first = client.files.write(
        project, "a.txt", b"one", workspace=workspace, if_none_match="*", message_id="m-1", mime="text/plain"
    )
    with pytest.raises(PreconditionFailed):
        client.files.write(project, "a.txt", b"two", workspace=workspace, if_none_match="*")
    seen = f'"{first.new_hash}"'
    second = client.files.write(project, "a.txt", b"two", workspace=workspace, if_match=seen)
    assert second.old_hash == first.new_hash
    for change in (
        lambda: client.files.delete(project, "a.txt", workspace=workspace, if_match=seen),
        lambda: client.files.rename(project, "a.txt", "b.txt", workspace=workspace, if_match=seen),
    ):
        with pytest.raises(PreconditionFailed):
            change()
    told = client.files.history(project, "a.txt", workspace=workspace).operations
    assert [(one.new_hash, one.message_id) for one in told] == [(second.new_hash, None), (first.new_hash, "m-1")]


def test_a_part_of_a_file_is_read_and_the_rest_downloaded(
    client: Client, place: tuple[str, str | None], tmp_path: Path
) -> None:
    project, workspace = place
    (tmp_path / "text.txt").write_text("äöü" * 4000)
    added = client.files.upload(project, tmp_path / "text.txt", workspace=workspace)
    part = client.files.read(project, added.path, offset=11_998, workspace=workspace)
    assert (part.content, part.total, part.read_length) == ("öü", 12_000, 2)
    rest = b"".join(client.files.download(project, added.path, start=23_996, workspace=workspace))
    assert rest.decode() == "öü"
    with pytest.raises(InvalidInput):
        client.files.upload(project, b"x", workspace=workspace)


@pytest.mark.parametrize("path", ["../a", "/a", "a/../b", "a//b", "a\\b", "a\0b", "", ".", "x" * 300])
def test_no_path_that_is_not_plain_is_sent(client: Client, place: tuple[str, str | None], path: str) -> None:
    project, workspace = place
    for ask in (client.files.read, client.files.details, client.files.delete):
        with pytest.raises(InvalidPath):
            ask(project, path, workspace=workspace)
    with pytest.raises(InvalidPath):
        client.files.write(project, path, b"x", workspace=workspace)


async def test_the_async_client_does_the_same(server: ServerProcess) -> None:
    project = f"s-{uuid4().hex[:12]}"
    async with AsyncClient(server.url, (server.data / "owner-token").read_text().strip()) as client:
        await client.projects.create(project)
        await client.files.write(project, "docs/a.txt", b"one")
        with pytest.raises(InvalidInput):
            await client.files.list(project, workspace="me", at="1")
        at_first = await client.files.list(project, "docs", at="1")
        assert [entry.name for entry in at_first.entries] == ["a.txt"]
        assert [piece async for piece in client.files.download(project, "docs/a.txt")] == [b"one"]


def test_every_operation_is_in_the_event_stream_when_it_is_answered(
    client: Client, place: tuple[str, str | None]
) -> None:
    project, workspace = place
    scope = f"project:{project}" if workspace is None else f"workspace:{client.workspaces.get(project).id}"
    cursor = client.events.list([scope], after="start", limit=1000).cursor
    files = client.files
    operations: list[tuple[Callable[[], object], str]] = [
        (lambda: files.write(project, "a.txt", b"one", workspace=workspace), "a.txt"),
        (lambda: files.upload(project, b"one", name="b.txt", workspace=workspace), "upload/b.txt"),
        (lambda: files.make_folder(project, "folder", workspace=workspace), "folder"),
        (lambda: files.rename(project, "a.txt", "folder/c.txt", workspace=workspace), "folder/c.txt"),
        (lambda: files.delete(project, "upload/b.txt", workspace=workspace), "upload/b.txt"),
    ]
    for operation, path in operations:
        operation()
        page = client.events.list([scope], after=cursor)
        assert path in str(page.items), (path, page.items)
        cursor = page.cursor


def test_downloads_follow_each_other_on_one_connection(server: ServerProcess, client: Client) -> None:
    project = f"s-{uuid4().hex[:12]}"
    client.projects.create(project)
    client.workspaces.create(project)
    content = os.urandom(1 << 20) * 24
    client.files.upload(project, content, name="large.bin", workspace="me")
    secret = (server.data / "owner-token").read_text().strip()
    query = {"project": project, "path": "upload/large.bin"}
    address = f"{server.url}/api/v1/workspaces/me/download"
    with httpx.Client(headers={"Authorization": f"Bearer {secret}"}, limits=httpx.Limits(max_connections=1)) as plain:
        assert plain.get(address, params=query).content == content
        part = plain.get(address, params=query, headers={"Range": "bytes=5-9999999"})
        assert (part.status_code, part.content == content[5:10_000_000]) == (206, True)
        with plain.stream("GET", address, params=query) as given_up:
            next(given_up.iter_raw())
        assert plain.get(address, params=query).content == content
    client.workspaces.abandon(project)
