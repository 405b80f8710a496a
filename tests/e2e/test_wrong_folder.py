"""Commands about data that is there make nothing where there is none."""

from pathlib import Path

import pytest
from tests.support.api import url_of
from tests.support.postgres import database_copy
from tests.support.server import run_cli

from contextbase.db.database import DatabaseAddress

pytestmark = pytest.mark.xdist_group("cli")

COMMANDS = [
    ["fsck"],
    ["gc"],
    ["gc", "--dry-run"],
    ["backup", "create", "BACKUP"],
    ["db", "migrate"],
    ["db", "migrate", "--check"],
    ["db", "shell"],
]


def arguments_of(command: list[str], backup: Path) -> list[str]:
    as_json = [] if command == ["db", "shell"] else ["--json"]
    return [str(backup) if word == "BACKUP" else word for word in command] + as_json


@pytest.mark.parametrize("how", ["option", "variable", "default"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_folder_without_a_contextbase_is_bad_input_and_stays_as_it_is(
    tmp_path: Path, command: list[str], how: str
) -> None:
    here, wrong, state = tmp_path / "here", tmp_path / "wrong", tmp_path / "state"
    here.mkdir()
    arguments = arguments_of(command, tmp_path / "backup")
    variables = {"XDG_STATE_HOME": str(state)}
    if how == "option":
        arguments += ["--data", str(wrong)]
    elif how == "variable":
        variables["CONTEXTBASE_DATA"] = str(wrong)
    done = run_cli(*arguments, cwd=here, **variables)
    assert (done.code, done.stdout) == (2, "")
    assert "invalid_input" in done.stderr
    assert (".contextbase-data" if how == "default" else str(wrong)) in done.stderr.replace(
        "/var/lib/contextbase/", ".contextbase-data"
    )
    assert "--data" in done.stderr
    assert "contextbase up" in done.stderr
    assert [path for path in tmp_path.rglob("*") if path != here] == []


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_an_external_database_without_a_contextbase_is_bad_input_and_stays_empty(
    embedded_database_server: DatabaseAddress, tmp_path: Path, command: list[str]
) -> None:
    async with database_copy(embedded_database_server, "template0") as address:
        variables = {"CONTEXTBASE_DATABASE_URL": url_of(address), "CONTEXTBASE_DATA": str(tmp_path)}
        for _ in range(2):
            done = run_cli(*arguments_of(command, tmp_path / "backup"), cwd=tmp_path, **variables)
            assert (done.code, done.stdout) == (2, ""), done.stderr
            assert "CONTEXTBASE_DATABASE_URL" in done.stderr


def test_doctor_says_that_nothing_is_there_yet_and_makes_nothing(tmp_path: Path) -> None:
    done = run_cli("doctor", "--data", str(tmp_path / "new"), "--json")
    assert done.code == 0
    findings = {finding["name"]: finding["detail"] for finding in done.json}
    assert "nothing in it yet" in findings["data folder"]
    assert list(tmp_path.iterdir()) == []
