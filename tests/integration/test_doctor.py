"""`doctor` asks the database and the bucket that are not ours, and says what is wrong with them."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.support.agent_world import open_agent_world
from tests.support.api import url_of
from tests.support.postgres import database_copy
from tests.support.s3_server import S3Server

from contextbase.bootstrap import ExaminationRun, findings_of
from contextbase.bootstrap.machines import known_machines
from contextbase.bootstrap.restore import problems_outside
from contextbase.bootstrap.session_alerts import session_alerts
from contextbase.config import Settings
from contextbase.db.database import Database, DatabaseAddress
from contextbase.errors import Unavailable
from contextbase.ids import SystemClock
from contextbase.machine import Finding, examine
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


@dataclass
class SettableClock:
    time: datetime

    def now(self) -> datetime:
        return self.time


async def test_what_blocks_leaves_the_event_loop_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, asked, answered = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def blocking(*_: object, **__: object) -> list[Finding]:
        loop.call_soon_threadsafe(asked.set)
        return [Finding(name="loop", answer="yes" if answered.wait(10) else "broken", detail="")]

    async def answer() -> None:
        await asked.wait()
        answered.set()

    monkeypatch.setattr("contextbase.bootstrap.examination.examine", blocking)
    found, _ = await asyncio.gather(findings_of(Settings(data=tmp_path)), answer())
    assert found[0].answer == "yes"


async def test_who_asks_meanwhile_gets_the_same_examination_and_who_asks_later_a_new_one() -> None:
    runs = 0

    async def examined() -> list[Finding]:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.01)
        return [Finding(name="run", answer="yes", detail=str(runs))]

    run = ExaminationRun(examined, clock=SystemClock())
    first, second = await asyncio.gather(run.result(), run.result())
    assert first is second
    assert (await run.result()).findings[0].detail == "2"
    await run.close()


async def test_an_examination_that_takes_too_long_is_given_to_the_next_who_asks() -> None:
    slow = asyncio.Event()

    async def examined() -> list[Finding]:
        await slow.wait()
        return [Finding(name="slow", answer="yes", detail="")]

    run = ExaminationRun(examined, clock=SystemClock(), patience=0.01)
    with pytest.raises(Unavailable):
        await run.result()
    slow.set()
    await asyncio.sleep(0.05)
    assert (await run.result()).findings[0].name == "slow"
    slow.clear()
    with pytest.raises(Unavailable):
        await run.result()
    await run.close()  # and waits for nothing


@pytest.mark.parametrize("how", ["failed", "ended long ago"])
async def test_nobody_is_given_an_examination_that_is_worth_nothing(how: str) -> None:
    slow, clock, runs = asyncio.Event(), SettableClock(SystemClock().now()), 0

    async def examined() -> list[Finding]:
        nonlocal runs
        runs += 1
        await slow.wait()
        if how == "failed" and runs == 1:
            raise Unavailable("The database does not answer.")
        return [Finding(name="run", answer="yes", detail=str(runs))]

    run = ExaminationRun(examined, clock=clock, patience=0.2)
    with pytest.raises(Unavailable):
        await run.result()
    slow.set()
    await asyncio.sleep(0.05)
    clock.time += timedelta(hours=1)
    assert (await run.result()).findings[0].detail == "2"
    await run.close()
