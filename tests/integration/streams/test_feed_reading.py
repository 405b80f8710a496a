"""Cursors, pages, and what a reader is not told."""

import asyncio
from datetime import timedelta

import pytest
from tests.support.feed_world import FeedWorld, at, seqs_of, shown
from tests.support.gate_world import delete, mkdir, rename, write

from contextbase.errors import CursorOutdated, InvalidInput, NotFound
from contextbase.ids import ProjectId, TreePath, new_uuid
from contextbase.streams.feed_model import MOST_CHANGES_SHOWN, FeedCommit
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.repository import StreamRepository


def event(path: str | None = None, kind: str = "notice") -> NewEvent:
    return NewEvent(kind=kind, path=TreePath(path) if path else None, payload={"n": 1})


async def test_commits_come_in_order_and_say_what_they_did(world: FeedWorld) -> None:
    await world.gate.commit(write("a", b"1", 0), mkdir("d", 0), message="Begin.")
    await world.gate.commit(write("a", b"22", 1))
    await world.gate.commit(rename("a", "b", 2))
    await world.gate.commit(delete("b", 3))
    page = await world.read()
    assert shown(page) == [
        ("created", "a"), ("created", "d"), ("changed", "a"), ("renamed", "b", "a"), ("deleted", "b"),
    ]  # fmt: skip
    first = page.items[0].body
    assert isinstance(first, FeedCommit)
    assert (first.message, first.author.name, first.changes[0].size) == ("Begin.", "owner", 1)
    assert (at(page.cursor), page.more) == ((4, 0), False)


async def test_going_on_from_each_cursor_gives_everything_once(world: FeedWorld) -> None:
    for number in range(7):
        await world.gate.commit(write(f"f{number}", b"x", 0))
        await world.publish(event())
    seqs, events, after = [], 0, "start"
    for _ in range(20):
        page = await world.read(after=after, limit=3)
        seqs += seqs_of(page.items)
        events += len(page.items) - len(seqs_of(page.items))
        after = str(page.cursor)
        if not page.more:
            break
    assert (seqs, events) == (list(range(1, 8)), 7)


async def test_every_items_cursor_resumes_right_after_it(world: FeedWorld) -> None:
    for number in range(4):
        await world.gate.commit(write(f"f{number}", b"x", 0))
        await world.publish(event(kind=f"notice-{number}"))
    page = await world.read()
    for index, item in enumerate(page.items):
        rest = await world.read(after=str(item.cursor))
        assert shown(rest) == shown(page)[index + 1 :]


async def test_without_a_cursor_a_reader_starts_now(world: FeedWorld) -> None:
    await world.gate.commit(write("a", b"1", 0))
    page = await world.read(after=None)
    assert (page.items, at(page.cursor)) == ((), (1, 0))


async def test_a_checkouts_epoch_and_seq_are_a_cursor(world: FeedWorld) -> None:
    await world.gate.commit(write("a", b"1", 0))
    await world.publish(event())
    await world.gate.commit(write("b", b"1", 0))
    page = await world.read(after=f"{world.gate.project.epoch}.1")
    assert shown(page) == [("created", "b")]


async def test_a_cursor_from_before_a_restore_is_refused(world: FeedWorld) -> None:
    await world.gate.commit(write("a", b"1", 0))
    old = str((await world.read()).cursor)
    await world.renew_epoch()
    with pytest.raises(CursorOutdated):
        await world.read(after=old)
    assert shown(await world.read(after="start")) == [("created", "a")]


@pytest.mark.parametrize("place", ["{epoch}.2.0", "{epoch}.1.1"])
async def test_a_cursor_of_a_future_that_is_not_ours_is_refused(world: FeedWorld, place: str) -> None:
    await world.gate.commit(write("a", b"1", 0))
    with pytest.raises(CursorOutdated):
        await world.read(after=place.format(epoch=world.gate.project.epoch))


@pytest.mark.parametrize("text", ["", "1", "x.1", "{epoch}", "{epoch}.-1", "{epoch}.1.2.3", "{epoch}." + "9" * 30])
async def test_what_is_no_cursor_is_invalid(world: FeedWorld, text: str) -> None:
    with pytest.raises(InvalidInput):
        await world.read(after=text.format(epoch=world.gate.project.epoch))


async def test_a_project_that_is_not_there_has_no_feed(world: FeedWorld) -> None:
    with pytest.raises(NotFound):
        await world.feed.heads(ProjectId(new_uuid()))


async def test_a_commit_to_hidden_paths_is_passed_over_and_the_cursor_moves_on(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    await world.gate.commit(write("secret/a", b"1", 0))
    await world.gate.commit(write("open", b"1", 0))
    await world.gate.commit(write("secret/b", b"1", 0))
    page = await world.read(bob)
    assert shown(page) == [("created", "open")]
    assert (at(page.cursor), page.more) == ((3, 0), False)


async def test_the_end_of_a_folder_is_told_alike_whether_hidden_things_stay_in_it_or_not(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("full/secret/**", "hidden", bob)
    await world.gate.rule("bare/secret/**", "hidden", bob)
    await world.gate.commit(mkdir("full", 0), mkdir("bare", 0), write("full/secret/a", b"1", 0))
    for folder in ("full", "bare"):
        await world.gate.commit(delete(folder, 1), who=bob)
    assert shown(await world.read(bob))[-2:] == [("deleted", "full"), ("deleted", "bare")]


async def test_a_page_is_filled_past_what_is_hidden(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    await asyncio.gather(*(world.gate.commit(write(f"secret/{number}", b"1", 0)) for number in range(450)))
    await world.gate.commit(write("open", b"1", 0))
    assert shown(await world.read(bob, limit=1)) == [("created", "open")]


async def test_of_a_commit_that_is_partly_hidden_only_the_visible_part_shows(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    await world.gate.commit(write("open", b"1", 0), write("secret/plan", b"1", 0), message="Add secret/plan.")
    page = await world.read(bob)
    assert shown(page) == [("created", "open")]
    assert "secret" not in repr(page)
    assert "Add secret/plan." in repr(await world.read())


async def test_a_commit_of_which_all_was_set_aside_is_an_item_without_changes(world: FeedWorld) -> None:
    await world.gate.merge_rule("kept", "ours")
    await world.gate.commit(write("a", b"1\n", 0), write("kept", b"1\n", 0))
    await world.gate.commit(write("a", b"2\n", 1), write("kept", b"2\n", 1))
    lost = await world.gate.commit(write("a", b"3\n", 1), write("kept", b"3\n", 1))
    page = await world.read()
    assert seqs_of(page.items) == [1, 2, 3]
    last = page.items[-1].body
    assert isinstance(last, FeedCommit)
    assert last.changes == ()
    assert [(aside.path, aside.reason, aside.side_version_id, aside.review_id) for aside in last.set_aside] == [
        (answer.path, answer.status, answer.side_version_id, answer.review_id) for answer in lost.changes
    ]
    assert seqs_of((await world.read(below="elsewhere")).items) == []


async def test_what_was_set_aside_out_of_sight_is_not_shown_and_takes_the_message_along(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    await world.gate.commit(write("secret/a", b"1\n", 0))
    await world.gate.commit(write("secret/a", b"2\n", 1))
    await world.gate.commit(write("secret/a", b"3\n", 1), message="A secret quarrel.")
    await world.gate.commit(write("secret/a", b"4\n", 1), write("open", b"1", 1), message="Add open, and secret/a.")
    page = await world.read(bob)
    assert (seqs_of(page.items), shown(page)) == ([4], [("created", "open")])
    assert "secret" not in repr(page)
    assert "Add open, and secret/a." in repr(await world.read())


async def test_a_rename_across_the_border_of_what_one_sees_is_a_deletion_or_a_creation(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    await world.gate.commit(write("open", b"1", 0))
    seen = str((await world.read(bob)).cursor)
    await world.gate.commit(rename("open", "secret/open", 1))
    page = await world.read(bob, after=seen)
    assert shown(page) == [("deleted", "open")]
    assert "secret" not in repr(page)
    await world.gate.commit(rename("secret/open", "back", 2))
    page = await world.read(bob, after=str(page.cursor))
    assert shown(page) == [("created", "back")]
    assert "secret" not in repr(page)


async def test_old_changes_of_what_has_been_moved_out_of_sight_are_not_shown(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    await world.gate.commit(write("open", b"1", 0))
    await world.gate.commit(rename("open", "secret/open", 1))
    assert shown(await world.read(bob)) == [("deleted", "open")]


async def test_below_a_path_only_what_happens_there_shows(world: FeedWorld) -> None:
    await world.gate.commit(write("docs/a", b"1", 0), write("docs-old/b", b"1", 0), write("c", b"1", 0))
    await world.gate.commit(rename("docs/a", "a", 1))
    await world.publish(event("docs/x"))
    await world.publish(event("c"))
    assert shown(await world.read(below="docs")) == [("created", "docs/a"), ("deleted", "docs/a"), ("notice", "docs/x")]


async def test_a_commit_of_very_many_changes_says_how_many_are_left_off(world: FeedWorld) -> None:
    changes = [write(f"f{number:04}", b"x", 0) for number in range(MOST_CHANGES_SHOWN + 5)]
    await world.gate.commit(*changes)
    [item] = (await world.read()).items
    assert isinstance(item.body, FeedCommit)
    assert (len(item.body.changes), item.body.left_off) == (MOST_CHANGES_SHOWN, 5)


async def test_events_are_numbered_and_shown_to_who_sees_their_path(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    numbers = [await world.publish(event(path)) for path in ("open", "secret/a", None)]
    assert numbers == [1, 2, 3]
    page = await world.read(bob)
    assert shown(page) == [("notice", "open"), ("notice",)]
    assert at(page.cursor) == (0, 3)


async def test_old_events_are_pruned_and_passed_over(world: FeedWorld) -> None:
    for kind in ("old", "older", "new"):
        await world.publish(event(kind=kind))
    async with world.gate.database.connection() as connection:
        await connection.execute(
            "UPDATE stream_events SET created_at = created_at - $1::interval WHERE kind <> 'new'", timedelta(days=8)
        )
    assert await world.streams.prune() == 2
    page = await world.read()
    assert (shown(page), at(page.cursor), page.more) == ([("new",)], (0, 3), False)
    async with world.gate.database.connection() as connection:
        await connection.execute("DELETE FROM stream_events")
    page = await world.read()
    assert (page.items, at(page.cursor), page.more) == ((), (0, 3), False)


async def test_an_event_whose_transaction_ends_late_is_never_skipped(world: FeedWorld) -> None:
    project_id = world.gate.project.id
    async with world.gate.database.transaction() as connection:
        await StreamRepository().append(connection, Scope.project(project_id), [event(kind="slow")])
        quick = asyncio.create_task(world.publish(event(kind="quick")))
        await asyncio.sleep(0.2)
        page = await world.read()
        assert (page.items, at(page.cursor)) == ((), (0, 0))
    await quick
    assert shown(await world.read(after=str(page.cursor))) == [("slow",), ("quick",)]


async def test_a_commit_whose_transaction_ends_late_is_never_skipped(world: FeedWorld) -> None:
    """While a transaction has a seq, no other commit gets a later one."""
    await world.gate.commit(write("a", b"1", 0))
    async with world.gate.database.transaction() as connection:
        await connection.execute("SELECT FROM projects WHERE id = $1 FOR UPDATE", world.gate.project.id)
        waiting = asyncio.create_task(world.gate.commit(write("b", b"1", 0)))
        await asyncio.sleep(0.2)
        page = await world.read()
        assert (seqs_of(page.items), page.more) == ([1], False)
    await waiting
    assert shown(await world.read(after=str(page.cursor))) == [("created", "b")]


async def test_what_landed_after_the_heads_were_read_is_left_for_the_next_page(world: FeedWorld) -> None:
    """So an authority that is loaded after the heads is never older than what it filters."""
    bob = await world.gate.agent("bob")
    await world.gate.commit(write("a", b"1", 0))
    heads = await world.feed.heads(world.gate.project.id)
    viewpoint = await world.viewpoint(bob)
    await world.gate.rule("secret/**", "hidden", bob)
    await world.gate.commit(write("secret/a", b"1", 0))
    page = await world.feed.read(viewpoint, heads, world.feed.cursor(heads, "start"))
    assert (shown(page), at(page.cursor)) == ([("created", "a")], (1, 0))
