"""Many readers of one window, with hints, without them, and through lost connections."""

import asyncio
from pathlib import Path

import pytest
from tests.support.feed_world import FeedWorld, seqs_of, shown
from tests.support.gate_world import rename, write

from contextbase.db.database import Connection, Database
from contextbase.errors import CursorOutdated, NotFound
from contextbase.ids import Seq
from contextbase.streams import feed_window, window
from contextbase.streams.feed_model import FeedCommit, FeedHeads
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import NewEvent
from contextbase.streams.notifier import Notifier


@pytest.fixture
def only_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by themselves: what is seen was hinted at."""
    monkeypatch.setattr(window, "POLL_SECONDS", 3600.0)


async def until_listening(world: FeedWorld, count: int = 1) -> list[int]:
    """The backends that listen for hints on the world's database."""
    for _ in range(500):
        async with world.gate.database.connection() as connection:
            rows = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
        if len(rows) >= count:
            return [row["pid"] for row in rows]
        await asyncio.sleep(0.02)
    raise AssertionError("nobody listens")


async def commit_many(world: FeedWorld, count: int) -> None:
    for number in range(count):
        await world.gate.commit(write(f"f{number}", b"x", 0))


@pytest.mark.usefixtures("only_hints")
async def test_fifty_readers_get_every_commit_once_and_in_order_with_one_reading(world: FeedWorld) -> None:
    class Counting(FeedRepository):
        read: list[int]

        async def commits(self, connection: Connection, heads: FeedHeads, after: Seq, limit: int) -> list[FeedCommit]:
            found = await super().commits(connection, heads, after, limit)
            self.read += [commit.seq for commit in found]
            return found

    repository = Counting()
    repository.read = []
    async with world.another_server(repository) as server:
        readers = await asyncio.gather(*(world.follow(40, server.feed) for _ in range(50)))
        await until_listening(world)
        writers = [asyncio.gather(*(world.gate.commit(write(f"{w}-{n}", b"x", 0)) for n in range(10))) for w in "abcd"]
        await asyncio.gather(*writers)
        for items in await asyncio.gather(*readers):
            assert seqs_of(items) == list(range(1, 41))
    assert repository.read == list(range(1, 41))


async def test_without_any_hint_readers_see_everything_by_looking(embedded_database: Database, tmp_path: Path) -> None:
    async with FeedWorld.opened(embedded_database, tmp_path, hints=False) as world:
        reader = await world.follow(5)
        await commit_many(world, 5)
        assert seqs_of(await reader) == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("only_hints")
async def test_a_hint_reaches_another_process(world: FeedWorld) -> None:
    async with world.another_server() as other:
        reader = await world.follow(3, other.feed)
        await until_listening(world)
        await commit_many(world, 3)
        assert seqs_of(await reader) == [1, 2, 3]


@pytest.mark.usefixtures("only_hints")
async def test_hints_are_heard_again_after_the_connection_was_lost(world: FeedWorld) -> None:
    async with world.another_server() as other:
        first, reader = await world.follow(1, other.feed), await world.follow(2, other.feed)
        [backend] = await until_listening(world)
        async with world.gate.database.connection() as connection:
            await connection.execute("SELECT pg_terminate_backend($1)", backend)
        await world.gate.commit(write("while nobody hears", b"x", 0))
        assert seqs_of(await first) == [1]
        await world.gate.commit(write("again", b"x", 0))
        assert seqs_of(await reader) == [1, 2]


@pytest.mark.usefixtures("only_hints")
async def test_an_event_wakes_readers_too(world: FeedWorld) -> None:
    heads = await world.feed.heads(world.gate.project.id)
    viewpoint, cursor = await world.viewpoint(), heads.cursor
    async with world.feed.follow(heads) as follower:
        await until_listening(world)
        await world.publish(NewEvent(kind="notice", payload={}))
        async with asyncio.timeout(60):
            while not (page := await follower.read(viewpoint, cursor)).items:
                await follower.wait(heads.cursor, 60)
    assert shown(page) == [("notice",)]


async def test_many_hints_become_few_notifications(world: FeedWorld) -> None:
    heard: list[object] = []
    async with world.gate.database.connection() as other:
        listener = lambda *arguments: heard.append(arguments[-1])  # noqa: E731 - to be removed by identity
        await other.add_listener("contextbase_streams", listener)
        for _ in range(20):
            for _ in range(100):
                world.notifier.hint_project(world.gate.project.id)
            await asyncio.sleep(0)
        assert world.notifier._sender is not None
        await world.notifier._sender
        await other.execute("SELECT 1")
        await other.remove_listener("contextbase_streams", listener)
    assert 1 <= len(heard) <= 20
    assert {str(payload).split()[-1] for payload in heard} == {f"project:{world.gate.project.id}"}


async def test_a_reader_who_fell_behind_the_window_is_served_from_the_database(
    world: FeedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_window, "_MOST_KEPT", 2)
    heads = await world.feed.heads(world.gate.project.id)
    viewpoint, cursor, seqs = await world.viewpoint(), heads.cursor, []
    async with world.feed.follow(heads) as follower:
        reader = await world.follow(10)
        await commit_many(world, 10)
        await reader
        while cursor.seq < 10:
            page = await follower.read(viewpoint, cursor, limit=3)
            cursor = page.cursor
            seqs += seqs_of(page.items)
    assert seqs == list(range(1, 11))


async def test_a_burst_larger_than_one_reading_is_taken_in_whole(
    world: FeedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_window, "_AT_ONCE", 3)
    reader = await world.follow(20)
    await asyncio.gather(*(world.gate.commit(write(f"f{number}", b"x", 0)) for number in range(20)))
    assert seqs_of(await reader) == list(range(1, 21))


async def test_what_the_window_holds_of_a_file_moved_out_of_sight_is_not_shown_any_more(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    heads = await world.feed.heads(world.gate.project.id)
    async with world.feed.follow(heads) as follower:
        reader = await world.follow(2)
        await world.gate.commit(write("open", b"1", 0))
        await world.gate.commit(rename("open", "secret/open", 1))
        await reader
        page = await follower.read(await world.viewpoint(bob), heads.cursor)
    assert shown(page) == [("deleted", "open")]


async def test_readers_who_see_the_same_share_a_page_and_others_never_do(world: FeedWorld) -> None:
    ann, bob, eve = [await world.gate.agent(name) for name in ("ann", "bob", "eve")]
    for who in (ann, bob):
        await world.gate.rule("secret/**", "hidden", who)
    heads = await world.feed.heads(world.gate.project.id)
    async with world.feed.follow(heads) as follower:
        reader = await world.follow(1)
        await world.gate.commit(write("open", b"1", 0), write("secret/a", b"1", 0))
        await reader
        pages = [await follower.read(await world.viewpoint(who), heads.cursor) for who in (ann, bob, eve, None)]
        narrow = await follower.read(await world.viewpoint(eve, "open"), heads.cursor)
        assert pages[0] is pages[1]
        assert pages[2] is pages[3]
        assert shown(pages[0]) == shown(narrow) == [("created", "open")]
        assert shown(pages[2]) == [("created", "open"), ("created", "secret/a")]
        await world.gate.rule("open", "hidden", eve)
        assert shown(await follower.read(await world.viewpoint(eve), heads.cursor)) == [("created", "secret/a")]


async def test_a_restore_ends_the_following(world: FeedWorld) -> None:
    await world.gate.commit(write("a", b"1", 0))
    heads = await world.feed.heads(world.gate.project.id)
    viewpoint = await world.viewpoint()

    async def read_on() -> None:
        async with asyncio.timeout(60), world.feed.follow(heads) as follower:
            while True:
                await follower.read(viewpoint, heads.cursor)
                await follower.wait(heads.cursor, 60)

    reader = asyncio.create_task(read_on())
    await asyncio.sleep(0.1)
    await world.renew_epoch()
    with pytest.raises(CursorOutdated):
        await reader


async def test_deleting_the_project_ends_the_following(world: FeedWorld) -> None:
    reader = await world.follow(1)
    async with world.gate.database.connection() as connection:
        await connection.execute("UPDATE projects SET deleted_at = now() WHERE id = $1", world.gate.project.id)
    with pytest.raises(NotFound):
        await reader


async def test_a_new_policy_version_is_known_before_what_landed_under_it(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    heads = await world.feed.heads(world.gate.project.id)
    async with asyncio.timeout(60), world.feed.follow(heads) as follower:
        while follower.policy_version == 0:
            await follower.wait(heads.cursor, 60)
        await world.gate.rule("secret/**", "hidden", bob)
        await world.gate.commit(write("secret/a", b"1", 0))
        while not (await follower.read(await world.viewpoint(), heads.cursor)).items:
            await follower.wait(heads.cursor, 60)
        assert follower.policy_version == heads.policy_version + 1


async def test_nothing_runs_when_nobody_follows(world: FeedWorld) -> None:
    assert await (await world.follow(0)) == []
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not {name for name in names if name.startswith("stream")} - {"streams-listen"}


async def test_a_notifier_that_nobody_used_closes(world: FeedWorld) -> None:
    await Notifier(world.gate.database).close()
