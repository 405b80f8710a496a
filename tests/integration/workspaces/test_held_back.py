"""Files that look like credentials do not leave a workspace unless somebody says so, and are not lost with it."""

import pytest
from tests.support.workspace_world import WorkspaceWorld

from contextbase.errors import Forbidden, InvalidPath, NotFound
from contextbase.workspaces.checkpoints import Committed, Wish
from contextbase.workspaces.model import ScanProblem

TOKEN = "gh" + "p_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
OTHER = "gh" + "p_Z1y2X3w4V5u6T7s8R9q0P1o2N3m4L5k6J7i8"


def held_back(committed: Committed) -> list[str]:
    return [one.name.decode() for one in committed.reported if one.problem is ScanProblem.SECRET]


async def test_credentials_stay_in_the_folder_and_everything_else_is_committed(world: WorkspaceWorld) -> None:
    await world.put({"config.py": b"a = 1\n"})
    folder = await world.create("ann")
    (folder / ".env").write_text("PASSWORD=1")
    (folder / "config.py").write_text(f"a = 1\ntoken = '{TOKEN}'\n")
    (folder / "code.py").write_text("b = 2\n")
    committed = await world.commit("ann")
    assert held_back(committed) == [".env", "config.py"]
    assert all(TOKEN not in one.reason and "--allow" in one.reason for one in committed.reported)
    assert await world.tree() == {"config.py": b"a = 1\n", "code.py": b"b = 2\n"}
    assert (folder / ".env").read_text() == "PASSWORD=1"


async def test_completing_keeps_a_folder_that_holds_them_until_they_are_allowed_or_given_up(
    world: WorkspaceWorld,
) -> None:
    folder = await world.create("ann")
    (folder / ".env").write_text("PASSWORD=1")
    completed = await world.complete("ann")
    assert not completed.is_removed
    assert [".env" in sentence for sentence in completed.kept_because] == [True]
    assert (folder / ".env").read_text() == "PASSWORD=1"
    assert (await world.complete("ann", discard=True)).is_removed
    assert await world.tree() == {}


async def test_a_file_that_is_allowed_by_name_is_committed_and_not_held_back_while_it_stays_as_it_is(
    world: WorkspaceWorld,
) -> None:
    folder = await world.create("ann")
    (folder / ".env").write_text("PASSWORD=1")
    (folder / "key.txt").write_text(TOKEN)
    committed = await world.commit("ann", Wish(allow=(".env",)))
    assert held_back(committed) == ["key.txt"]
    assert held_back(await world.commit("ann", Wish(allow=("*.txt",)))) == []
    assert await world.tree() == {".env": b"PASSWORD=1", "key.txt": TOKEN.encode()}
    assert held_back(await world.commit("ann")) == []
    (folder / ".env").write_text("PASSWORD=2")  # the project has the file: its name is nothing new
    (folder / "key.txt").write_text(OTHER)
    assert held_back(await world.commit("ann")) == ["key.txt"]


async def test_a_renamed_file_is_not_held_back_for_what_the_project_has(world: WorkspaceWorld) -> None:
    await world.put({"key.txt": TOKEN.encode()})
    folder = await world.create("ann")
    (folder / "key.txt").rename(folder / "renamed.txt")
    committed = await world.commit("ann")
    assert held_back(committed) == []
    assert await world.tree() == {"renamed.txt": TOKEN.encode()}


async def test_a_project_says_which_credentials_are_shared_and_whether_gitignore_counts(world: WorkspaceWorld) -> None:
    await world.put({".gitignore": b"*.log\n"})
    folder = await world.create("ann")
    (folder / "fixtures").mkdir()
    (folder / "fixtures" / "key.txt").write_text(TOKEN)
    (folder / "a.log").write_text("1")
    assert held_back(await world.commit("ann")) == ["fixtures/key.txt"]
    projects = world.services.projects
    project = await projects.set_sharing(
        world.owner, world.project_id, reads_gitignore=False, allowed_secrets=["/fixtures/**", "fixtures/**"]
    )
    assert project.sharing.allowed_secrets == ("fixtures/**",)
    assert held_back(await world.commit("ann")) == []
    assert set(await world.tree()) == {".gitignore", "a.log", "fixtures/key.txt"}
    unchanged = await projects.set_sharing(world.owner, world.project_id, allowed_secrets=[])
    assert (unchanged.sharing.reads_gitignore, unchanged.sharing.allowed_secrets) == (False, ())


async def test_only_an_administrator_changes_what_is_shared(world: WorkspaceWorld) -> None:
    projects = world.services.projects
    with pytest.raises(Forbidden):
        await projects.set_sharing(await world.agent("ann"), world.project_id, reads_gitignore=False)
    with pytest.raises(InvalidPath):
        await projects.set_sharing(world.owner, world.project_id, allowed_secrets=["../x"])
    await projects.delete(world.owner, world.project_id)
    with pytest.raises(NotFound):
        await projects.set_sharing(world.owner, world.project_id, reads_gitignore=False)


async def test_ignored_credentials_are_ignored_and_not_reported(world: WorkspaceWorld) -> None:
    await world.put({".gitignore": b".env\n"})
    folder = await world.create("ann")
    (folder / ".env").write_text("PASSWORD=1")
    completed = await world.complete("ann")
    assert completed.is_removed
    assert [str(one.rule) for one in completed.committed.ignored] == [".gitignore:1: .env"]
