"""A folder and a container's files, kept in line: each side's changes reach the other, and none undoes the other's."""

import io
import random
import shutil
import tarfile
from pathlib import Path

import pytest

from contextbase.agents.model import AgentPlace
from contextbase.executor.workspace_transfer import WorkspaceTransfer
from contextbase.sessions.folder_agreement import (
    Agreement,
    given_archive,
    read_agreement,
    take_archive,
    write_agreement,
)
from contextbase.workspaces.model import Owner

OWNER = Owner.of_this_process()


class Sides:
    """The folder here, the files of a container, and what they agreed on."""

    def __init__(self, root: Path) -> None:
        self.work, self.box = root / "work", root / "box"
        self.archive, self.place = root / "archive.tar", root / "agreement.json"
        for folder in (self.work, self.box):
            folder.mkdir()
        self.start()
        write_agreement(self.place, Agreement(container="one"))

    def start(self) -> None:
        """An executor that knows nothing."""
        place = AgentPlace(
            workspace=self.box,
            agent_data=self.box / ".agent_data",
            home=self.box,
            model_url="",
            proxy_url="",
            mcp_url="",
            program_folders=(),
            environment={},
        )
        self.executor = WorkspaceTransfer(place)

    @property
    def agreed(self) -> Agreement:
        found = read_agreement(self.place)
        assert found is not None
        return found

    def send(self) -> list[str]:
        agreed = self.agreed
        if agreed.token is not None and not self.executor.knows(agreed.token):
            self.bring_back()
            agreed = self.agreed
        now = given_archive(self.work, self.archive, agreed.entries)
        if now is None:
            return []
        with self.archive.open("rb") as file:
            answer = self.executor.restore(file, agreed.token)
        entries = {path: content for path, content in now.items() if path not in answer["kept"]}
        write_agreement(self.place, Agreement(container="one", token=answer["token"], entries=entries))
        kept: list[str] = answer["kept"]
        return kept

    def bring_back(self) -> tuple[str, ...]:
        with self.archive.open("wb") as file:
            self.executor.changes(self.agreed.token).write(file)
        taken = take_archive(self.work, OWNER, self.archive, self.agreed.entries, lambda path: path[0] != "~")
        write_agreement(self.place, Agreement(container="one", token=taken.token, entries=taken.entries))
        return taken.conflicts


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


def tree(root: Path) -> dict[str, str]:
    """Files with their contents, links with their targets, and empty folders."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/", maxsplit=1)[0] == ".contextbase":
            continue
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text() + ("x" if path.stat().st_mode & 0o100 else "")
        elif not any(path.iterdir()):
            found[name] = "folder"
    return found


def put(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_what_each_side_did_reaches_the_other_and_undoes_nothing(sides: Sides) -> None:
    put(sides.work, "a.md", "a\n")
    put(sides.work, "docs/b.md", "b\n")
    sides.send()
    assert tree(sides.box) == {"a.md": "a\n", "docs/b.md": "b\n"}
    put(sides.box, "a.md", "the agent's\n")
    put(sides.work, "docs/b.md", "a person's\n")
    sides.bring_back()
    sides.send()
    assert tree(sides.work) == tree(sides.box) == {"a.md": "the agent's\n", "docs/b.md": "a person's\n"}


def test_where_both_changed_a_file_the_folders_stays_and_the_containers_is_put_aside(sides: Sides) -> None:
    put(sides.work, "a.md", "a\n")
    sides.send()
    put(sides.box, "a.md", "the agent's\n")
    put(sides.work, "a.md", "a person's\n")
    assert sides.bring_back() == ("a.md",)
    assert (sides.work / "a.md").read_text() == "a person's\n"
    assert (sides.work / ".contextbase/conflicts/a.md/from-container").read_text() == "the agent's\n"


def test_what_the_agent_writes_while_files_are_sent_is_not_overwritten(sides: Sides) -> None:
    put(sides.work, "a.md", "a\n")
    sides.send()
    put(sides.work, "a.md", "a person's\n")
    put(sides.box, "a.md", "the agent's, and longer\n")
    assert sides.send() == ["a.md"]
    assert (sides.box / "a.md").read_text() == "the agent's, and longer\n"


@pytest.mark.parametrize("has_restarted", [False, True])
def test_any_edits_on_both_sides_end_in_the_same_files(sides: Sides, has_restarted: bool) -> None:
    chance = random.Random(7)
    names = ["a", "b", "d/a", "d/e/a", "d/e", "f/a", "f"]
    for step in range(200):
        side = chance.choice((sides.work, sides.box))
        place = side / chance.choice(names)
        match chance.randrange(5):
            case 0 | 1:
                parents = [parent for parent in place.parents if parent.is_relative_to(side)]
                if place.is_dir() or any(parent.is_file() or parent.is_symlink() for parent in parents):
                    continue
                place.unlink(missing_ok=True)
                put(side, str(place.relative_to(side)), f"{step}\n")
                place.chmod(chance.choice((0o644, 0o755)))
            case 2 if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            case 2 if place.is_symlink() or place.is_file():
                place.unlink()
            case 3 if place.parent.is_dir() and not place.exists() and not place.is_symlink():
                place.symlink_to(f"nowhere-{step}")
            case 4 if place.parent.is_dir() and not place.exists() and not place.is_symlink():
                place.mkdir()
            case _:
                continue
        if has_restarted and step % 7 == 0:
            sides.start()
        sides.bring_back()
        assert sides.send() == []
        assert tree(sides.work) == tree(sides.box), step
    assert tree(sides.work)


def test_an_archive_that_leads_out_of_the_folder_is_not_followed(sides: Sides, tmp_path: Path) -> None:
    with tarfile.open(sides.archive, "w") as archive:
        for name in ("../out.md", "/tmp/out.md", "in.md"):  # noqa: S108 - a name that must be refused
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"x\n"))
    taken = take_archive(sides.work, OWNER, sides.archive, {}, lambda _: True)
    assert list(taken.entries) == ["in.md"]
    assert not (tmp_path / "out.md").exists()
