"""A resolver is asked about what is contested and nothing else, and believed only as far as it can be checked."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.chat_server import ChatServer, Said, excerpts, running_chat_server
from tests.support.gate_world import write
from tests.support.review_world import ReviewWorld

from contextbase.backoff import Backoff
from contextbase.db.database import Database
from contextbase.errors import Conflict, Misconfigured, Unavailable
from contextbase.gate.model import ReviewState
from contextbase.review.adviser import Adviser
from contextbase.review.chat import ChatResolver
from contextbase.review.retry import RetryingResolver

SECRET = "the launch code"
TEXTS = [
    "".join(f"{line}\n" for line in (SECRET, *"abcdef", contested, *"ghijkl", "the end")).encode()
    for contested in ("base", "ours", "theirs")
]


@pytest.fixture
async def world(embedded_database: Database, tmp_path: Path) -> ReviewWorld:
    return await ReviewWorld.start(embedded_database, tmp_path)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChatServer]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with running_chat_server(excerpts(lambda s: s["ours"].strip() + " and " + s["theirs"])) as server:
        yield server


def adviser_of(world: ReviewWorld, server: ChatServer, *, applies: bool = False, seconds: float = 5.0) -> Adviser:
    chat = ChatResolver(url=server.url, model="merger-1", api_key="key", timeout_seconds=seconds)
    return world.adviser(RetryingResolver(chat, backoff=Backoff(retries=2, first=0.01)), applies=applies)


async def problem_of(world: ReviewWorld, review: UUID) -> str:
    suggestion = (await world.stored(review)).suggestion
    assert suggestion is not None
    assert suggestion.texts is None
    assert (await world.show(review)).suggested is None
    with pytest.raises(Conflict, match="no suggestion"):
        await world.resolve(review, "suggested")
    return suggestion.problem


async def test_a_good_answer_is_shown_and_waits_for_a_person(world: ReviewWorld, server: ChatServer) -> None:
    review = await world.contested("a.txt", *TEXTS)
    assert await adviser_of(world, server).advise() == 1
    shown = await world.show(review)
    assert (shown.item.state, shown.item.suggestion and shown.item.suggestion.by) == (ReviewState.OPEN, "merger-1")
    assert shown.suggested == TEXTS[1].replace(b"ours", b"ours and theirs")
    assert await world.file("a.txt") == TEXTS[1]
    await world.resolve(review, "suggested")
    assert await world.file("a.txt") == shown.suggested


async def test_only_what_is_contested_and_a_few_lines_around_it_are_sent(
    world: ReviewWorld, server: ChatServer
) -> None:
    await world.contested("a.txt", *TEXTS)
    await adviser_of(world, server).advise()
    assert "theirs" in server.asked
    assert SECRET not in server.asked
    assert server.requests[0]["model"] == "merger-1"
    assert server.headers[0]["authorization"] == "Bearer key"


async def test_what_is_suggested_is_applied_where_the_operator_says_so(world: ReviewWorld, server: ChatServer) -> None:
    review = await world.contested("a.txt", *TEXTS)
    await adviser_of(world, server, applies=True).advise()
    item = await world.stored(review)
    assert (item.state, item.closed and item.closed.by.kind) == (ReviewState.RESOLVED, "system")
    assert await world.file("a.txt") == TEXTS[1].replace(b"ours", b"ours and theirs")
    assert await world.gate.problems() == []


async def test_it_is_never_applied_to_what_needs_a_person(world: ReviewWorld, server: ChatServer) -> None:
    review = await world.contested("a.txt", *TEXTS)
    await world.gate.merge_rule("a.txt", "critical")
    await adviser_of(world, server, applies=True).advise()
    item = await world.stored(review)
    assert (item.state, item.suggestion is None) == (ReviewState.OPEN, False)
    assert await world.file("a.txt") == TEXTS[1]


@pytest.mark.parametrize(
    "said",
    [Said(words="I would say: keep both."), Said(words='{"excerpts": 7}'), Said(body=b"<html>"), Said(body=b"[" * 9999),
     Said(body=b"x" * 300_000)],
    ids=["prose", "not a list", "no json", "deep", "endless"],
)  # fmt: skip
async def test_garbage_is_said_to_be_of_no_use_and_not_asked_for_again(
    world: ReviewWorld, server: ChatServer, said: Said
) -> None:
    server.script = lambda _: said
    review = await world.contested("a.txt", *TEXTS)
    await adviser_of(world, server, applies=True).advise()
    assert await problem_of(world, review) == "the resolver's answer made no sense"
    assert await adviser_of(world, server).advise() == 0
    assert len(server.requests) == 1


async def test_a_change_outside_of_what_is_contested_is_refused(world: ReviewWorld, server: ChatServer) -> None:
    for number, edit in enumerate(
        (
            lambda s: s["before"].replace("f", "F") + "both\n" + s["after"],
            lambda s: s["before"] + "both\n" + s["after"][:-2],
            lambda s: s["before"][:-2] + s["after"],
        )
    ):
        server.script = lambda stretches, edit=edit: Said(words=json.dumps({"excerpts": [edit(s) for s in stretches]}))
        review = await world.contested(f"{number}.txt", *TEXTS)
        await adviser_of(world, server, applies=True).advise()
        assert await problem_of(world, review) == "it changed text that is not contested"
        assert await world.file(f"{number}.txt") == TEXTS[1]


async def test_an_answer_that_leaves_markers_or_breaks_the_file_is_refused(
    world: ReviewWorld, server: ChatServer
) -> None:
    server.script = excerpts(lambda s: f"<<<<<<< ours\n{s['ours']}")
    review = await world.contested("a.txt", *TEXTS)
    await adviser_of(world, server, applies=True).advise()
    assert await problem_of(world, review) == "it left conflict markers"
    server.script = excerpts(lambda s: s["ours"].replace("2", "{"))
    sides = [json.dumps({"x": value}, indent=2).encode() for value in (1, 2, 3)]
    review = await world.contested("a.json", *sides)
    await adviser_of(world, server, applies=True).advise()
    assert await problem_of(world, review) == "it does not make a valid file"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_who_does_not_answer_is_asked_again_and_later(
    world: ReviewWorld, server: ChatServer, status: int
) -> None:
    good, server.script = server.script, lambda _: Said(status=status)
    review = await world.contested("a.txt", *TEXTS)
    adviser = adviser_of(world, server)
    with pytest.raises(Unavailable):
        await adviser.advise_on(world.gate.project.id, await world.stored(review))
    assert len(server.requests) == 3
    assert await adviser.advise() == 0
    assert (await world.stored(review)).suggestion is None
    server.script = good
    assert await adviser.advise() == 1


async def test_one_who_takes_too_long_is_given_up(world: ReviewWorld, server: ChatServer) -> None:
    server.script = lambda _: Said(after_seconds=30)
    review = await world.contested("a.txt", *TEXTS)
    with pytest.raises(Unavailable, match="does not answer"):
        await adviser_of(world, server, seconds=0.05).advise_on(world.gate.project.id, await world.stored(review))


async def test_one_who_refuses_us_is_the_operators_business(world: ReviewWorld, server: ChatServer) -> None:
    server.script = lambda _: Said(status=401)
    await world.contested("a.txt", *TEXTS)
    with pytest.raises(Misconfigured, match="CONTEXTBASE_RESOLVER_URL"):
        await adviser_of(world, server).advise()
    assert len(server.requests) == 1


async def test_a_suggestion_goes_when_other_text_is_contested_and_is_asked_for_anew(
    world: ReviewWorld, server: ChatServer
) -> None:
    review = await world.contested("a.txt", *TEXTS)
    await adviser_of(world, server).advise()
    await world.write("a.txt", TEXTS[1].replace(b"the end", b"The End"))
    assert (await world.show(review)).suggested is not None  # others changed something else
    await world.write("a.txt", (await world.file("a.txt") or b"").replace(b"ours", b"third"))
    assert (await world.show(review)).suggested is None
    with pytest.raises(Conflict, match="no suggestion"):
        await world.resolve(review, "suggested")
    assert await adviser_of(world, server).advise() == 1
    suggested = (await world.show(review)).suggested
    assert suggested is not None
    assert b"third and theirs" in suggested


async def test_what_is_too_long_to_ask_about_is_not_sent(world: ReviewWorld, server: ChatServer) -> None:
    sides = [b"".join(b"%s %d\n" % (name, n) for n in range(3000)) for name in (b"base", b"ours", b"theirs")]
    made = await world.gate.commit(write("long.txt", sides[0], 0))
    await world.write("long.txt", sides[1])
    answer = await world.gate.one(write("long.txt", sides[2], made.seq))
    assert answer.review_id is not None
    await adviser_of(world, server).advise()
    assert server.requests == []
    assert "too long" in await problem_of(world, answer.review_id)
