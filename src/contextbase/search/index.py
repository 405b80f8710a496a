"""Asking the index: which blobs may hold what is looked for."""

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.ids import ProjectId, Seq
from contextbase.search.grams import GramQuery
from contextbase.search.segments import Segment, numbers_in

__all__ = ["BlobCandidates", "candidates_for"]

_SQL: Final = load_queries("contextbase.search")
_MOST_LISTED: Final = 200_000  # more are not told apart: then every file of the project is looked into


@dataclass(frozen=True, kw_only=True, slots=True)
class BlobCandidates:
    """The blobs that may match, of all projects; who may see which is not decided here."""

    numbers: frozenset[int] | None  # of those in the index; None: it cannot tell
    last_blob: int  # what has a higher number, or none, was not in the index when it was asked
    indexed_through: Seq  # every content of the project's commits up to this one has a number up to that

    def has(self, number: int | None) -> bool:
        return number is None or number > self.last_blob or self.numbers is None or number in self.numbers


async def candidates_for(connection: Connection, project_id: ProjectId, query: GramQuery) -> BlobCandidates:
    state = await connection.fetchrow(_SQL.index_state, project_id)
    assert state is not None, "the query always gives a row"  # noqa: S101 - for the type checker
    last = state["last_blob"]
    numbers = None if query.tells_nothing else await _passing(connection, query, last)
    return BlobCandidates(numbers=numbers, last_blob=last, indexed_through=Seq(state["seq"]))


async def _passing(connection: Connection, query: GramQuery, last: int) -> frozenset[int] | None:
    rows = await connection.fetch(_SQL.gram_weights, list(query.all_grams()))
    narrowed = query.narrowed({row["gram"]: row["weight"] for row in rows})
    found: set[int] = set()
    rows = await connection.fetch(_SQL.postings, list(narrowed.all_grams()))
    for number, lists in groupby(rows, key=lambda row: row["number"]):
        texts_with: dict[int, list[int]] = {}
        for row in lists:
            segment = Segment(number=number, first=row["first"], last=row["last"])
            texts_with[row["gram"]] = numbers_in(segment, row["ids"])
        found |= narrowed.passing(texts_with)
        if len(found) > _MOST_LISTED:
            return None
    return frozenset(number for number in found if number <= last)
