"""`doctor` asks the database and the bucket that are not ours, and says what is wrong with them."""

from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr
from tests.support.agent_world import open_agent_world
from tests.support.api import url_of
from tests.support.postgres import database_copy
from tests.support.s3_server import S3Server

from contextbase.bootstrap import known_machines, problems_outside, session_alerts
from contextbase.config import Settings
from contextbase.db.database import Database, DatabaseAddress
from contextbase.machine import examine
from contextbase.machines.presence import Presence
from contextbase.machines.repository import MachineRepository
from contextbase.sessions.repository import SessionRepository


def settings_of(server: S3Server, data: Path, *, bucket: str = "blobs", secret: str | None = None) -> Settings:
    return Settings(
        data=data,
        blobs=f"s3://{bucket}/prefix",
        s3_endpoint=server.endpoint,
        s3_access_key_id=server.access_key_id,
        s3_secret_access_key=SecretStr(secret or server.secret_access_key),
    )


async def test_a_bucket_that_answers_is_no_problem(s3_server: S3Server, tmp_path: Path) -> None:
    assert await problems_outside(settings_of(s3_server, tmp_path)) == {}


async def test_wrong_keys_and_a_missing_bucket_are_told_apart(s3_server: S3Server, tmp_path: Path) -> None:
    denied = await problems_outside(settings_of(s3_server, tmp_path, secret="wrong" * 8))
    missing = await problems_outside(settings_of(s3_server, tmp_path, bucket="nowhere"))
    assert denied["s3"] != missing["s3"]
    assert "nowhere" in missing["s3"]
    [finding] = [each for each in examine(settings_of(s3_server, tmp_path), problems=denied) if each.name == "s3"]
    assert (finding.answer, finding.advice) == ("broken", denied["s3"])


async def test_a_database_that_does_not_answer_is_broken_and_its_password_stays_secret(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, database_url=SecretStr("postgresql://me:hunter2@127.0.0.1:1/x"))
    problems = await problems_outside(settings)
    [finding] = [each for each in examine(settings, problems=problems) if each.name == "database"]
    assert finding.answer == "broken"
    assert "hunter2" not in str(finding)


async def test_the_machines_of_a_database_are_told_with_those_that_are_lost(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    assert await known_machines(Settings(data=tmp_path)) is None
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        database = await Database.connect(address)
        try:
            for name, lease in (("here", timedelta(hours=1)), ("gone", timedelta())):
                repository = MachineRepository()
                presence = Presence(database=database, repository=repository, name=name, version="1", lease=lease)
                await presence.register(None)
        finally:
            await database.close()
        settings = Settings(data=tmp_path, database_url=SecretStr(url_of(address)))
        assert await known_machines(settings) == {"gone": "lost", "here": "running"}


async def test_sessions_whose_files_cannot_be_stored_are_told(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    nowhere = Settings(data=tmp_path, database_url=SecretStr("postgresql://me:hunter2@127.0.0.1:1/x"))
    assert await session_alerts(nowhere) is None
    assert await session_alerts(Settings(data=tmp_path)) is None, "its own does not run"
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data") as agents,
    ):
        settings = Settings(data=tmp_path, database_url=SecretStr(url_of(address)))
        assert await session_alerts(settings) == {}
        session = await agents.session()
        await agents.host.folder(session)
        assert await session_alerts(settings) == {}
        async with agents.services.core.database.connection() as connection:
            for _ in range(5):
                await SessionRepository().count_failed_sync(connection, session.id, after=5, alert="The disk is full.")
        assert await session_alerts(settings) == {str(session.id): "The disk is full."}
