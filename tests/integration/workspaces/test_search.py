"""Search in a workspace: the folder's real content is what is found, with the snapshot's where nothing was changed."""

import os
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.gate_world import rename
from tests.support.search_world import Found, lines_of
from tests.support.workspace_world import WorkspaceWorld

from contextbase.errors import Forbidden, NotFound
from contextbase.identity.levels import Level
from contextbase.ids import TreePath
from contextbase.search.model import LARGEST_SEARCHED, ContentQuery, NameQuery, SkipReason
from contextbase.search.path_filter import PathFilter
from contextbase.search.pattern import TextPattern
from contextbase.workspaces.model import NamedWorkspace


async def grep(world: WorkspaceWorld, name: str, text: str, *, limit: int = 100, **options: Any) -> list[Found]:
    query = ContentQuery(pattern=TextPattern(text=text), **options)
    found: list[Found] = []
    cursor = None
    for _ in range(100):
        page = await world.agents.workspace_search.contents(
            await world.agent(name), NamedWorkspace(world.project_id), query, cursor=cursor, limit=limit
        )
        found += lines_of(page)
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the pages do not end")


async def find(world: WorkspaceWorld, name: str, words: str = "") -> list[str]:
    page = await world.agents.workspace_search.names(
        await world.agent(name), NamedWorkspace(world.project_id), NameQuery(words=words)
    )
    assert page.cursor is None
    return [str(path) for path in page.paths]


async def indexed(world: WorkspaceWorld) -> None:
    indexer = replace(world.services.search_indexer, patience=timedelta(0))
    while await indexer.index_some():
        pass


FILES: dict[str, bytes | None] = {
    "a.txt": b"needle a\n",
    "d/b.txt": b"needle b\n",
    "d/c.txt": b"needle c\n",
    "e/f/g.txt": b"needle g\n",
    "z.txt": b"nothing\n",
}


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize("limit", [1, 100])
async def test_what_the_agent_did_is_found_and_what_it_undid_is_not(
    world: WorkspaceWorld, is_indexed: bool, limit: int
) -> None:
    await world.put(FILES)
    folder = await world.create("ann")
    if is_indexed:
        await indexed(world)
    assert [line[0] for line in await grep(world, "ann", "needle", limit=limit)] == [*FILES][:4]
    (folder / "a.txt").write_text("no more\n")
    (folder / "d/b.txt").unlink()
    (folder / "d/c.txt").rename(folder / "d/moved.txt")
    (folder / "e/f").rename(folder / "e/h")
    (folder / "new.txt").write_text("a needle\n\nneedle\n")
    (folder / "z.txt").write_text("nothing\nneedle\n")
    (folder / "link").symlink_to("new.txt")
    expected = [
        ("d/moved.txt", 1, "needle c"),
        ("e/h/g.txt", 1, "needle g"),
        ("new.txt", 1, "a needle"),
        ("new.txt", 3, "needle"),
        ("z.txt", 2, "needle"),
    ]
    assert await grep(world, "ann", "needle", limit=limit) == expected
    everything = ["a.txt", "d/moved.txt", "e/h/g.txt", "link", "new.txt", "z.txt"]
    assert await find(world, "ann") == everything
    assert await find(world, "ann", "mov") == ["d/moved.txt"]
    # What is committed from there is found the same way, though the snapshot under the folder is still the old one.
    await world.commit("ann")
    assert await grep(world, "ann", "needle", limit=limit) == expected
    # Others see none of it in theirs.
    await world.put({"d/theirs.txt": b"needle\n"})
    assert "d/theirs.txt" not in await find(world, "ann")


async def test_a_folder_shows_what_its_agent_may_see(world: WorkspaceWorld) -> None:
    await world.put({**FILES, "secret/s.txt": b"needle s\n", "secret/in.txt": b"needle in\n"})
    await world.rule("secret/**", Level.HIDDEN)
    await world.write(rename("secret/in.txt", "out.txt", await world.head()))
    folder = await world.create("ann")
    await indexed(world)
    found = [line[0] for line in await grep(world, "ann", "needle")]
    assert found == ["a.txt", "d/b.txt", "d/c.txt", "e/f/g.txt", "out.txt"]
    assert not any(path.startswith("secret") for path in await find(world, "ann"))
    (folder / "secret").mkdir()
    (folder / "secret/own.txt").write_text("needle of its own\n")
    assert [line[0] for line in await grep(world, "ann", "needle of")] == ["secret/own.txt"]


async def test_another_agents_workspace_is_not_searched(world: WorkspaceWorld) -> None:
    await world.put(FILES)
    await world.create("ann")
    query = ContentQuery(pattern=TextPattern(text="needle"))
    search = world.agents.workspace_search
    with pytest.raises(Forbidden):
        await search.contents(await world.agent("bob"), NamedWorkspace(world.project_id, "ann"), query)
    with pytest.raises(NotFound):
        await search.contents(await world.agent("bob"), NamedWorkspace(world.project_id), query)
    page = await search.contents(world.owner, NamedWorkspace(world.project_id, "ann"), query)
    assert [file.path for file in page.files] == ["a.txt", "d/b.txt", "d/c.txt", "e/f/g.txt"]


async def test_nothing_outside_the_folder_is_read(world: WorkspaceWorld, tmp_path: Any) -> None:
    await world.put(FILES)
    folder = await world.create("ann")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/b.txt").write_text("needle outside\n")
    (tmp_path / "outside").chmod(0o755)
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(tmp_path / "outside/b.txt")
    (folder / "d/b.txt").unlink()
    (folder / "d/c.txt").unlink()
    (folder / "d").rmdir()
    (folder / "d").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe")
    assert [line[0] for line in await grep(world, "ann", "needle")] == ["e/f/g.txt"]


async def test_ignored_files_are_left_out_and_large_ones_named(world: WorkspaceWorld) -> None:
    await world.put(FILES)
    folder = await world.create("ann")
    (folder / ".gitignore").write_text("build/\n")
    (folder / "build").mkdir()
    (folder / "build/out.txt").write_text("needle\n")
    (folder / "huge").write_bytes(b"needle\n" * (LARGEST_SEARCHED // 7 + 1))
    query = ContentQuery(pattern=TextPattern(text="needle"), files=PathFilter(wanted=("build/**", "huge"), below=None))
    page = await world.agents.workspace_search.contents(
        await world.agent("ann"), NamedWorkspace(world.project_id), query
    )
    assert page.files == ()
    assert [(skipped.path, skipped.reason) for skipped in page.skipped] == [(TreePath("huge"), SkipReason.TOO_LARGE)]
