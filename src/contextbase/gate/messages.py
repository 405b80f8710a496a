"""Whom the messages of commits are for: `PathAuthority.may_read_message`, asked of all that each commit did."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ProjectId, Seq, TreePath

__all__ = ["readable_messages"]

_SQL: Final = load_queries("contextbase.gate")
_MOST_ROWS: Final = 30_000  # more than any one commit has


async def readable_messages(
    connection: Connection, project_id: ProjectId, seqs: Iterable[Seq], authority: PathAuthority
) -> frozenset[Seq]:
    """Of these commits, those whose message the caller may read."""
    left = set(seqs)
    if authority.sees_everything:
        return frozenset(left)
    readable: set[Seq] = set()
    while left:
        rows = await connection.fetch(_SQL.commit_places, project_id, list(left), _MOST_ROWS)
        # When the rows were too many for one reading, the last commit's may not all be here.
        incomplete = rows[-1]["seq"] if len(rows) == _MOST_ROWS else None
        for seq, group in groupby(rows, key=lambda row: Seq(row["seq"])):
            if seq == incomplete:
                break
            places = (place for row in group for place in (row["path"], row["path_before"], row["path_now"]))
            if authority.may_read_message(TreePath.stored(place) for place in places if place is not None):
                readable.add(seq)
            left.discard(seq)
        if incomplete is None:
            break
    return frozenset(readable)
