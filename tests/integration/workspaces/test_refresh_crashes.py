"""A refresh that is cut off at any moment: the next call finishes it, no work is lost and nobody's change is undone."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.workspace_world import WorkspaceWorld

from contextbase.gate.model import ChangeStatus
from contextbase.workspaces.editor import FolderEditor, left_in
from contextbase.workspaces.model import Owner
from contextbase.workspaces.refresh.edits import StagedEdits
from contextbase.workspaces.repository import WorkspaceRepository
from contextbase.workspaces.syscalls import rename

FIRST = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
SECOND = FIRST.replace(b"2\n", b"two\n")
ADDED = b"by the agent\n"
LISTED = b'{\n  "a": 1,\n  "b": 1\n}\n'
MINE = LISTED.replace(b'"b": 1', b'"b": 2')


class Killed(BaseException):
    pass


@contextmanager
def killed_at(event: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Raises before the thing of that number that a refresh does. Yields what was done until then."""
    done: list[str] = []

    def count(name: str) -> None:
        if len(done) >= event:
            raise Killed(name)
        done.append(name)

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            count(name)
            return function(*args, **options)

        return call

    def counted_async(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **options: Any) -> Any:
            count(name)
            return await function(*args, **options)

        return call

    with monkeypatch.context() as patched:
        patched.setattr("contextbase.workspaces.refresh.edits.rename", counted("rename", rename))
        for method in ("write_entry", "sync", "make_folder", "remove_folder"):
            patched.setattr(FolderEditor, method, counted(method, getattr(FolderEditor, method)))
        for method in ("begin_refresh", "end_refresh_step", "end_refresh"):
            patched.setattr(WorkspaceRepository, method, counted_async(method, getattr(WorkspaceRepository, method)))
        patched.setattr(StagedEdits, "clear", counted("clear", StagedEdits.clear))
        yield done


def append_in_place(file: Path) -> None:
    with file.open("ab") as opened:
        opened.write(ADDED)


def append_and_rename(file: Path) -> None:
    draft = file.with_name(f"{file.name}~")
    draft.write_bytes(file.read_bytes() + ADDED)
    draft.rename(file)


def leave_alone(file: Path) -> None:
    """The agent is at lunch."""


WAYS = (leave_alone, append_in_place, append_and_rename)


async def test_half_of_a_new_version_is_not_taken_for_a_late_write_of_the_agents(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace with late writes in it is never removed by itself."""
    await world.new_project()
    await world.put({"changed": FIRST})
    folder = await world.create("ann")
    await world.put({"changed": SECOND})

    def write_half(_editor: FolderEditor, place: int, name: str, *_: object) -> None:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=place))
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(FolderEditor, "write_entry", write_half)
        with pytest.raises(Killed):
            await world.refresh("ann")
    assert left_in(folder, Owner.of_this_process()) == []
    await world.refresh("ann")
    assert (folder / "changed").read_bytes() == SECOND


async def test_killed_anywhere_in_a_refresh_each_file_goes_on_from_what_the_agent_saw(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the server is down the agent works on, and others take everything back. Who mistook what a refresh had
    brought for the agent's own work would bring it in once more."""
    event, was_killed = 0, True
    while was_killed:
        await world.new_project()
        start = {"folder/only": FIRST, "list.json": LISTED, "untouched": FIRST}
        change: dict[str, bytes | None] = {"folder/only": None, "deep/new": FIRST}
        change["list.json"] = LISTED.replace(b'"a": 1', b'"a": 2')
        back: dict[str, bytes | None] = {"folder": None, "deep/new": None, "list.json": LISTED}
        for way in WAYS:
            name = way.__name__
            start |= {f"{name}/changed": FIRST, f"{name}/gone": FIRST}
            change |= {f"{name}/changed": SECOND, f"{name}/gone": None, f"{name}/new": SECOND}
            back |= {f"{name}/changed": FIRST, f"{name}/gone": b"again\n", f"{name}/new": None}
        await world.put({**start})
        folder = await world.create("ann")
        (folder / "list.json").write_bytes(MINE)
        await world.put(change)
        await world.put({"folder": b"now a file\n"})
        with killed_at(event, monkeypatch) as done:
            try:
                await world.refresh("ann")
                was_killed = False
            except Killed:
                was_killed = True
        touched = {
            f"{way.__name__}/{name}": way
            for way in WAYS
            for name in ("changed", "gone", "new")
            if way is not leave_alone and (folder / way.__name__ / name).exists()
        }
        for path, way in touched.items():
            way(folder / path)
        await world.put(back)
        await world.put({"folder/only": b"again\n"})

        told = f"killed at {event}, after {done}"
        statuses = {one.answered.change.path: one.answered.answer.status for one in (await world.commit("ann")).changes}
        assert statuses.keys() == {*touched, "list.json"}, told
        assert ChangeStatus.REFUSED not in statuses.values(), told
        tree = await world.tree()
        assert tree["list.json"] == MINE, told
        for path, body in {**start, **back, "folder/only": b"again\n", "list.json": MINE}.items():
            if path not in touched:
                assert tree.get(path) == body, told
            elif statuses[path] is not ChangeStatus.IN_REVIEW:  # there all sides are kept
                assert tree[path] == (body or b"") + ADDED, told
        await world.refresh("ann")
        assert await world.status("ann") == set(), told
        assert {path: (folder / path).read_bytes() for path in tree} == tree, told
        assert [*(folder / ".contextbase" / "tmp").iterdir()] == [], told
        event += 1
    assert event > 25
