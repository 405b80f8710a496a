"""What becomes of a contested change, by what a reviewer decides."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.review_world import ReviewWorld

from contextbase.db.database import Database
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.gate.model import ChangeStatus, ReviewState
from contextbase.identity.model import PrincipalName
from contextbase.ids import TreePath
from contextbase.review.model import Choice, ConflictPick, ItemFilter

BASE = b"1\n2\n3\n4\n5\n6\n7\n8\n"
OURS = b"1\ntwo\n3\n4\n5\n6\n7\n8\n"
THEIRS = b"1\nTWO\n3\n4\n5\n6\n7\neight\n"


@pytest.fixture
async def world(embedded_database: Database, tmp_path: Path) -> ReviewWorld:
    return await ReviewWorld.start(embedded_database, tmp_path)


async def test_what_was_not_contested_is_in_before_anybody_decides(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    assert await world.file("a.txt") == b"1\ntwo\n3\n4\n5\n6\n7\neight\n"
    shown = await world.show(review)
    assert [conflict.place.at for conflict in shown.conflicts] == ["2-2"]
    assert shown.draft is not None
    assert b"<<<<<<< ours: the head, 3\ntwo\n||||||| base\n2\n=======\nTWO\n>>>>>>> theirs: owner\n" in shown.draft
    assert (shown.base and shown.base.content, shown.theirs and shown.theirs.content) == (BASE, THEIRS)
    assert shown.by_conflict


async def test_theirs_takes_the_contested_places_and_nothing_else(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.write("a.txt", b"1\ntwo\n3\n4\nfive\n6\n7\neight\n")
    item = await world.resolve(review, "theirs")
    assert (item.state, item.closed and item.closed.seq) == (ReviewState.RESOLVED, 5)
    assert await world.file("a.txt") == b"1\nTWO\n3\n4\nfive\n6\n7\neight\n"
    assert await world.gate.problems() == []


async def test_what_somebody_took_back_since_does_not_come_back(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.write("a.txt", OURS)  # "eight" went in with the item, and is taken back
    await world.resolve(review, "theirs", at=await world.head())
    assert await world.file("a.txt") == b"1\nTWO\n3\n4\n5\n6\n7\n8\n"


async def test_ours_closes_without_a_commit(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    before = await world.head()
    item = await world.resolve(review, "ours")
    assert (item.state, item.closed and item.closed.seq) == (ReviewState.RESOLVED, None)
    assert await world.head() == before
    assert (await world.audited())[-1] == "review.resolve"
    assert await world.gate.problems() == []


async def test_conflicts_are_chosen_one_by_one(world: ReviewWorld) -> None:
    base = {"a": 1, "b": 1, "c": 1}
    texts = [
        json.dumps(value, indent=2).encode() + b"\n"
        for value in (base, {"a": 2, "b": 2, "c": 2}, {"a": 3, "b": 3, "c": 3})
    ]
    review = await world.contested("a.json", *texts)
    shown = await world.show(review)
    assert [conflict.place.at for conflict in shown.conflicts] == ["/a", "/b", "/c"]
    picks = (
        ConflictPick(conflict=1, side=Choice.OURS),
        ConflictPick(conflict=2, side=Choice.THEIRS),
        ConflictPick(conflict=3, text=b'"both"'),
    )
    with pytest.raises(InvalidInput, match="each of the 3 conflicts"):
        await world.resolve(review, "picked", picks=picks[:2])
    await world.resolve(review, "picked", picks=picks, at=shown.ours_seq)
    assert json.loads(await world.file("a.json") or b"") == {"a": 2, "b": 3, "c": "both"}


async def test_a_choice_that_breaks_the_file_is_refused(world: ReviewWorld) -> None:
    texts = [json.dumps({"a": value}, indent=2).encode() + b"\n" for value in (1, 2, 3)]
    review = await world.contested("a.json", *texts)
    with pytest.raises(InvalidInput, match="valid file"):
        await world.resolve(review, "picked", picks=(ConflictPick(conflict=1, text=b"}"),))
    assert (await world.stored(review)).state is ReviewState.OPEN


async def test_an_edited_file_is_merged_with_what_landed_since_it_was_shown(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    shown = await world.show(review)
    await world.write("a.txt", b"1\ntwo\n3\n4\nfive\n6\n7\neight\n")
    edited = b"1\ntwo, TWO\n3\n4\n5\n6\n7\neight\n"
    with pytest.raises(InvalidInput, match="needs ours_seq"):
        await world.resolve(review, "edited", content=edited)
    await world.resolve(review, "edited", at=shown.ours_seq, content=edited)
    assert await world.file("a.txt") == b"1\ntwo, TWO\n3\n4\nfive\n6\n7\neight\n"


@pytest.mark.parametrize("choice", ["theirs", "edited", "unseen"])
async def test_a_decision_about_what_has_changed_since_it_was_shown_is_not_carried_out(
    world: ReviewWorld, choice: str
) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    at = None if choice == "unseen" else (await world.show(review)).ours_seq
    wanted = "edited" if choice == "edited" else "theirs"
    await world.write("a.txt", b"1\nzwei\n3\n4\n5\n6\n7\neight\n")
    with pytest.raises(Conflict, match="look at the review item again"):
        await world.resolve(review, wanted, at=at, content=b"1\n22\n3\n4\n5\n6\n7\neight\n")
    assert await world.file("a.txt") == b"1\nzwei\n3\n4\n5\n6\n7\neight\n"
    assert (await world.stored(review)).state is ReviewState.OPEN
    shown = await world.show(review)
    assert [conflict.ours for conflict in shown.conflicts] == [b"zwei\n"]
    await world.resolve(review, "theirs", at=shown.ours_seq)
    assert await world.file("a.txt") == b"1\nTWO\n3\n4\n5\n6\n7\neight\n"


async def test_who_loses_the_race_to_decide_is_told(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    at = (await world.show(review)).ours_seq
    answers = await asyncio.gather(
        world.resolve(review, "theirs", at=at), world.resolve(review, "ours"),
        world.resolve(review, "edited", at=at, content=b"x\n"), return_exceptions=True,
    )  # fmt: skip
    lost = [answer for answer in answers if isinstance(answer, Conflict)]
    assert len(lost) == 2, answers
    assert await world.gate.problems() == []


async def test_a_decision_gets_through_while_others_keep_writing(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)

    async def others() -> None:
        for number in range(10):
            text = await world.file("a.txt") or b""
            await world.gate.one(write("a.txt", text.replace(b"5", b"5" + b"." * number), await world.head()))

    await asyncio.gather(others(), world.resolve(review, "theirs"))
    assert b"\nTWO\n" in (await world.file("a.txt") or b"")


async def test_a_deletion_is_carried_out_or_given_up_as_decided(world: ReviewWorld) -> None:
    for path, choice, left in (("a", "theirs", None), ("b", "ours", b"2")):
        made = await world.gate.commit(write(path, b"1", await world.head()))
        await world.write(path, b"2")
        answer = await world.gate.one(delete(path, made.seq))
        assert answer.review_id is not None
        await world.resolve(answer.review_id, choice)
        assert await world.file(path) == left


async def test_what_was_deleted_meanwhile_is_brought_back_if_so_decided(world: ReviewWorld) -> None:
    made = await world.gate.commit(write("a", b"1", 0))
    await world.gate.commit(delete("a", made.seq))
    answer = await world.gate.one(write("a", b"2", made.seq))
    assert answer.review_id is not None
    assert (await world.stored(answer.review_id)).reason == "deleted-and-changed"
    await world.resolve(answer.review_id, "theirs")
    assert await world.file("a") == b"2"


async def test_a_file_renamed_twice_goes_where_it_is_decided_with_everybodys_edits(world: ReviewWorld) -> None:
    made = await world.gate.commit(write("a", BASE, 0))
    await world.gate.commit(rename("a", "b", made.seq))
    await world.write("b", OURS)
    answer = await world.gate.one(rename("a", "c", made.seq))
    assert answer.review_id is not None
    assert (await world.stored(answer.review_id)).reason == "renamed-twice"
    await world.resolve(answer.review_id, "theirs")
    assert await world.gate.files() == {"c": OURS}


async def test_a_rename_onto_a_taken_name_replaces_what_is_there_if_so_decided(world: ReviewWorld) -> None:
    made = await world.gate.commit(write("a", b"of a\n", 0))
    await world.gate.commit(write("b", b"of b\n", made.seq))
    answer = await world.gate.one(rename("a", "b", made.seq))
    assert answer.review_id is not None
    await world.resolve(answer.review_id, "theirs")
    assert await world.gate.files() == {"b": b"of a\n"}
    assert await world.gate.problems() == []


async def test_a_file_takes_the_place_of_a_folder_if_so_decided(world: ReviewWorld) -> None:
    await world.gate.commit(write("a/x", b"1", 0), write("a/y", b"1", 0))
    answer = await world.gate.one(write("a", b"file", 0))
    assert answer.review_id is not None
    assert (await world.stored(answer.review_id)).reason == "file-and-folder"
    await world.resolve(answer.review_id, "theirs")
    assert await world.gate.files() == {"a": b"file"}


async def test_a_folder_that_is_not_empty_any_more_goes_if_so_decided(world: ReviewWorld) -> None:
    made = await world.gate.commit(mkdir("a", 0))
    await world.gate.commit(write("a/x", b"1", made.seq))
    answer = await world.gate.one(delete("a", made.seq))
    assert answer.review_id is not None
    assert (await world.stored(answer.review_id)).reason == "folder-not-empty"
    await world.resolve(answer.review_id, "theirs")
    assert await world.gate.files() == {}


async def test_a_critical_file_is_for_people(world: ReviewWorld) -> None:
    await world.gate.merge_rule("prod.yaml", "critical")
    bob, ann = await world.gate.agent("bob"), await world.user("ann")
    answer = await world.gate.one(write("prod.yaml", b"a: 1\n", 0), bob)
    assert answer.review_id is not None
    assert (await world.show(answer.review_id)).draft == b"a: 1\n"
    for choice in ("ours", "theirs"):
        with pytest.raises(Forbidden):
            await world.resolve(answer.review_id, choice, who=bob)
    await world.write("other", b"x")
    assert (await world.show(answer.review_id)).item.state is ReviewState.OPEN
    await world.resolve(answer.review_id, "theirs", who=ann)
    assert await world.file("prod.yaml") == b"a: 1\n"


async def test_deciding_takes_the_right_to_write_and_seeing_the_item(world: ReviewWorld) -> None:
    review = await world.contested("docs/a.txt", BASE, OURS, THEIRS)
    reader, stranger = await world.gate.agent("reader"), await world.gate.agent("stranger")
    await world.gate.rule("docs/**", "R", reader)
    await world.gate.rule("docs/**", "hidden", stranger)
    with pytest.raises(Forbidden):
        await world.resolve(review, "theirs", who=reader)
    with pytest.raises(NotFound, match="that you may see"):
        await world.resolve(review, "theirs", who=stranger)
    with pytest.raises(NotFound):
        await world.show(review, stranger)
    assert (await world.page(stranger)).items == ()
    assert [item.id for item in (await world.page(reader)).items] == [review]


async def test_an_item_whose_file_was_moved_to_where_one_may_not_look_is_hidden_too(world: ReviewWorld) -> None:
    stranger = await world.gate.agent("stranger")
    review = await world.contested("a.txt", BASE, OURS, THEIRS, stranger)
    await world.gate.rule("secret/**", "hidden", stranger)
    assert (await world.page(stranger)).items != ()
    await world.gate.commit(rename("a.txt", "secret/a.txt", await world.head()))
    assert (await world.page(stranger)).items == ()
    with pytest.raises(NotFound):
        await world.show(review, stranger)
    await world.upkeep.sweep()
    await world.write("secret/a.txt", BASE)  # now it would merge; its author may not write there
    await world.upkeep.sweep()
    assert await world.file("secret/a.txt") == BASE
    assert (await world.stored(review)).state is ReviewState.OPEN


async def test_a_resolution_follows_a_file_that_was_renamed(world: ReviewWorld) -> None:
    review = await world.contested("a.txt", BASE, OURS, THEIRS)
    await world.gate.commit(rename("a.txt", "b.txt", await world.head()))
    await world.resolve(review, "theirs")
    assert await world.gate.files() == {"b.txt": b"1\nTWO\n3\n4\n5\n6\n7\neight\n"}


async def test_what_both_added_is_not_brought_back_when_it_was_removed_since(world: ReviewWorld) -> None:
    await world.gate.commit(write("a.json", b'{\n  "x": 1,\n  "y": 1\n}\n', 0))
    answer = await world.gate.one(write("a.json", b'{\n  "x": 2,\n  "y": 1,\n  "z": 2\n}\n', 0))
    assert (answer.status, answer.review_id is None) == (ChangeStatus.IN_REVIEW, False)
    assert json.loads(await world.file("a.json") or b"") == {"x": 1, "y": 1, "z": 2}
    await world.write("a.json", b'{\n  "x": 1,\n  "y": 1\n}\n')
    assert answer.review_id is not None
    await world.resolve(answer.review_id, "theirs", at=await world.head())
    assert json.loads(await world.file("a.json") or b"") == {"x": 2, "y": 1}


async def test_the_list_is_filtered_and_paged(world: ReviewWorld) -> None:
    bob = await world.gate.agent("bob")
    made = [await world.contested(f"d{n % 2}/{n}.txt", BASE, OURS, THEIRS, bob if n < 2 else None) for n in range(4)]
    await world.resolve(made[3], "ours")
    first = await world.page(limit=2)
    rest = await world.page(wanted=ItemFilter(before=first.next_before), limit=2)
    assert [item.id for item in (*first.items, *rest.items)] == [made[2], made[1], made[0]]
    assert {item.id for item in (await world.page(wanted=ItemFilter(state=None))).items} == set(made)
    below = await world.page(wanted=ItemFilter(path=TreePath("d0")))
    assert {item.id for item in below.items} == {made[0], made[2]}
    by_bob = await world.page(author=PrincipalName.parse("agent:bob"))
    assert {item.id for item in by_bob.items} == {made[0], made[1]}
