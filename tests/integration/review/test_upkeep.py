"""Items are kept true while they wait: merged again, closed when there is nothing left to decide, told of."""

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from tests.support.gate_world import delete, write
from tests.support.review_world import ReviewWorld

from contextbase.db.database import Database
from contextbase.errors import Conflict, ContentPurged, CursorOutdated, Forbidden, InvalidInput
from contextbase.gate.model import ReviewState
from contextbase.identity.model import Action, GrantSource
from contextbase.ids import ContentHash, ProjectId
from contextbase.review.callers import SystemPrincipal
from contextbase.review.model import Choice, ReviewDecision
from contextbase.streams.bodies import EventBodies
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.notifier import Notifier
from contextbase.streams.repository import StreamRepository
from contextbase.streams.service import StreamService

BASE = b"1\n2\n3\n4\n5\n"
OURS = b"1\ntwo\n3\n4\n5\n"
THEIRS = b"1\nTWO\n3\n4\n5\n"


@pytest.fixture
async def world(embedded_database: Database, tmp_path: Path) -> ReviewWorld:
    return await ReviewWorld.start(embedded_database, tmp_path)


async def test_an_item_is_obsolete_once_the_head_has_all_of_it(world: ReviewWorld) -> None:
    bob = await world.gate.agent("bob")
    review = await world.contested("a.txt", BASE, OURS, THEIRS, bob)
    await world.write("a.txt", THEIRS)
    head = await world.head()
    assert await world.upkeep.sweep() == 1
    item = await world.stored(review)
    assert (item.state, item.closed and item.closed.seq) == (ReviewState.OBSOLETE, None)
    assert item.closed is not None
    assert item.closed.by.kind == "system"
    assert await world.head() == head
    [event] = await world.events()
    assert (event.kind, event.path) == ("review.obsolete", "a.txt")
    assert event.payload == {
        "review_id": str(review), "side_version_id": str(item.side_id), "author": "agent:bob", "by": "system:review",
        "seq": None,
    }  # fmt: skip
    assert (await world.audited())[-1] == "review.obsolete"
    assert await world.gate.problems() == []


async def test_the_systems_caller_has_no_more_rights_than_closing_items_takes(world: ReviewWorld) -> None:
    project = world.gate.project.id
    system = await SystemPrincipal(world.gate.database).caller(project)
    system.require(Action.WRITE, project)
    assert (system.grant.source, system.grant.token_id) == (GrantSource.CHORE, None)
    for action, place in ((Action.ADMIN, project), (Action.WRITE, ProjectId(uuid4())), (Action.READ, None)):
        with pytest.raises(Forbidden):
            system.require(action, place)


async def test_an_item_goes_in_by_itself_once_its_conflict_is_gone(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.write("a.txt", b"1\n2\n3\n4\nfive\n")
    assert (await world.page()).items == ()
    shown = await world.show(review)
    assert (shown.item.state, shown.item.closed and shown.item.closed.seq) == (ReviewState.OBSOLETE, 5)
    assert await world.file("a.txt") == b"1\nTWO\n3\n4\nfive\n"
    async with world.gate.database.connection() as connection:
        message = await connection.fetchval(
            "SELECT message FROM commits WHERE project_id = $1 AND seq = 5", world.gate.project.id
        )
    assert message == "Merged a.txt by owner after the conflict went away"
    assert await world.gate.problems() == []


async def test_an_item_stays_open_for_a_contested_deletion_when_the_head_takes_the_rest_of_it(
    world: ReviewWorld,
) -> None:
    base = b'{\n  "a": 1,\n  "b": 1,\n  "z": 1\n}\n'
    ours = base.replace(b'"a": 1', b'"a": 2').replace(b'"b": 1', b'"b": 2')
    theirs = b'{\n  "a": 3,\n  "z": 1\n}\n'
    review = await world.contested("a.json", base, ours, theirs)
    await world.write("a.json", ours.replace(b'"a": 2', b'"a": 3'))
    await world.upkeep.sweep()
    item = await world.stored(review)
    assert (item.state, [conflict.place.at for conflict in item.conflicts]) == (ReviewState.OPEN, ["/b"])
    await world.resolve(review, "theirs", at=await world.head())
    assert await world.file("a.json") == theirs


@pytest.mark.parametrize("strategy", ["review", "critical"])
async def test_where_the_policy_asks_for_a_person_nothing_goes_in_by_itself(world: ReviewWorld, strategy: str) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.gate.merge_rule("a.txt", strategy)
    world_file = await world.file("a.txt")
    user = await world.user("ann")
    if strategy == "critical":
        answer = await world.gate.one(write("a.txt", b"1\n2\n3\n4\nfive\n", await world.head()), user)
        assert answer.review_id is not None
        await world.resolve(answer.review_id, "theirs", who=user)
    else:
        await world.write("a.txt", b"1\n2\n3\n4\nfive\n")
    assert await world.file("a.txt") != world_file
    await world.upkeep.sweep()
    assert (await world.stored(review)).state is ReviewState.OPEN
    await world.resolve(review, "theirs", at=await world.head(), who=user)
    assert await world.file("a.txt") == b"1\nTWO\n3\n4\nfive\n"


async def test_what_its_author_may_not_do_any_more_does_not_go_in_by_itself(world: ReviewWorld) -> None:
    bob = await world.gate.agent("bob")
    review = await world.contested("a.txt", BASE, OURS, THEIRS, bob)
    await world.gate.rule("a.txt", "R", bob)
    await world.write("a.txt", BASE)
    await world.upkeep.sweep()
    assert (await world.stored(review)).state is ReviewState.OPEN
    assert await world.file("a.txt") == BASE


async def test_an_open_item_is_refreshed_with_what_is_contested_now(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.write("a.txt", b"1\nzwei\n3\n4\n5\n")
    await world.write("other", b"x")
    await world.upkeep.sweep()
    item = await world.stored(review)
    assert [conflict.ours for conflict in item.conflicts] == [b"zwei\n"]
    assert (item.ours_number, item.checked_seq) == (3, 5)
    await world.gate.commit(delete("a.txt", await world.head()))
    await world.upkeep.sweep()
    item = await world.stored(review)
    assert (item.reason, item.ours_number, item.state) == ("deleted-and-changed", None, ReviewState.OPEN)


async def test_what_happens_elsewhere_costs_an_item_no_merge(
    world: ReviewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.write("other", b"x")
    monkeypatch.setattr(world.standings, "of", None)
    assert await world.upkeep.sweep() == 1
    assert (await world.stored(review)).checked_seq == 4
    assert await world.upkeep.sweep() == 0


async def test_two_sweeps_at_once_close_an_item_once(world: ReviewWorld) -> None:
    for number in range(5):
        await world.contested(f"{number}.txt", BASE, OURS, THEIRS)
        await world.write(f"{number}.txt", b"1\n2\n3\n4\nfive\n")
    other = ReviewWorld.over(world.gate)
    await asyncio.gather(world.upkeep.sweep(), other.upkeep.sweep())
    assert (await world.page()).items == ()
    kinds = [event.kind for event in await world.events()]
    assert kinds == ["review.obsolete"] * 5
    assert await world.gate.problems() == []


async def test_a_claim_is_advice_that_another_may_take_over(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    ann, ben = await world.user("ann"), await world.user("ben")
    project = world.gate.project.id
    item = await world.reviews.claim(ann, project, review)
    assert item.claim is not None
    assert item.claim.by == ann.principal
    with pytest.raises(Conflict, match="user:ann has claimed it since"):
        await world.reviews.claim(ben, project, review)
    with pytest.raises(Conflict, match="You have not claimed it"):
        await world.reviews.release(ben, project, review)
    taken = await world.reviews.claim(ben, project, review, take_over=True)
    assert taken.claim is not None
    assert taken.claim.by == ben.principal
    assert (await world.reviews.release(ben, project, review)).claim is None
    await world.reviews.claim(ann, project, review)
    await world.resolve(review, "theirs", who=ben)  # advice, not a lock


async def test_comments_are_numbered_shown_and_told_of(world: ReviewWorld) -> None:
    bob = await world.gate.agent("bob")
    review = await world.contested("a.txt", BASE, OURS, THEIRS, bob)
    say = world.reviews.comment
    for who, text in ((world.gate.owner, "Why TWO?"), (bob, "It shouts.")):
        await say(who, world.gate.project.id, review, text)
    comments = (await world.show(review)).comments
    assert [(comment.number, comment.text) for comment in comments] == [(1, "Why TWO?"), (2, "It shouts.")]
    events = await world.events()
    assert [(event.kind, event.payload["author"]) for event in events] == [("review.commented", "agent:bob")] * 2
    assert (await world.audited())[-2:] == ["review.comment"] * 2


async def test_a_rejected_item_is_closed_with_its_reason_and_the_head_stays(world: ReviewWorld) -> None:
    bob, carl = await world.gate.agent("bob"), await world.gate.agent("carl")
    review = await world.contested("a.txt", BASE, OURS, THEIRS, bob)
    await world.gate.rule("a.txt", "R", carl)
    await world.gate.rule("a.txt", "R", bob)
    project, reject = world.gate.project.id, world.reviews.reject
    with pytest.raises(Forbidden):
        await reject(carl, project, review)
    item = await reject(bob, project, review, reason="Never mind.")
    assert item.state is ReviewState.REJECTED
    assert [comment.text for comment in (await world.show(review)).comments] == ["Never mind."]
    assert await world.file("a.txt") == OURS
    assert (await world.audited())[-2:] == ["review.comment", "review.reject"]
    with pytest.raises(Conflict, match="rejected already"):
        await world.resolve(review, "theirs")


async def test_an_item_whose_content_was_purged_waits_for_somebody_to_give_it_up(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    async with world.gate.database.transaction() as connection:
        await world.gate.catalog.bury(connection, [ContentHash.of(THEIRS)], [world.gate.project.id])
    await world.write("a.txt", BASE)
    await world.upkeep.sweep()
    shown = await world.show(review)
    assert (shown.item.state, shown.theirs and shown.theirs.content, shown.draft) == (ReviewState.OPEN, None, None)
    with pytest.raises(ContentPurged):
        await world.resolve(review, "theirs", at=shown.ours_seq)
    await world.resolve(review, "ours")
    assert await world.file("a.txt") == BASE


async def test_the_chore_looks_after_items_that_nobody_asks_for(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.write("a.txt", THEIRS)
    await world.upkeep.keep_up()
    assert (await world.stored(review)).state is ReviewState.OBSOLETE


async def test_nobody_decides_as_of_a_head_from_before_the_item(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    for at, match in ((2, "did not exist at"), (9, "after the project's head")):
        with pytest.raises(InvalidInput, match=match):
            await world.resolve(review, "theirs", at=at)


async def test_a_decision_from_before_a_restore_is_refused(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    shown = await world.show(review)
    async with world.gate.database.connection() as connection:
        await connection.execute("UPDATE projects SET epoch = gen_random_uuid() WHERE id = $1", world.gate.project.id)
    decision = ReviewDecision(choice=Choice.THEIRS, epoch=shown.epoch, ours_seq=shown.ours_seq)
    with pytest.raises(CursorOutdated):
        await world.reviews.resolve(world.gate.owner, world.gate.project.id, review, decision)
    assert (await world.stored(review)).state is ReviewState.OPEN


async def test_deciding_talking_publishing_and_committing_at_once_never_lock_each_other_out(world: ReviewWorld) -> None:
    reviews = [await world.contested(f"{number}.txt", BASE, OURS, THEIRS) for number in range(8)]
    project, owner = world.gate.project.id, world.gate.owner
    streams = StreamService(
        database=world.gate.database, repository=StreamRepository(), bodies=EventBodies(world.gate.catalog),
        notifier=Notifier(world.gate.database), retention={},
    )  # fmt: skip

    async def publish() -> None:
        for _ in range(20):
            await streams.publish(Scope.project(project), NewEvent(kind="notice", payload={}))

    async def talk(review: UUID) -> None:
        for _ in range(3):
            await world.reviews.comment(owner, project, review, "Well?")

    async def write_elsewhere() -> None:
        for number in range(20):
            await world.gate.commit(write("elsewhere", b"%d" % number, await world.head()))

    both = [world.resolve(review, choice) for review in reviews for choice in ("theirs", "ours")]
    talks = [talk(review) for review in reviews]
    answers = await asyncio.gather(*both, *talks, publish(), publish(), write_elsewhere(), return_exceptions=True)
    assert [type(answer) for answer in answers if isinstance(answer, Exception)] == [Conflict] * len(reviews)
    assert await world.gate.problems() == []
