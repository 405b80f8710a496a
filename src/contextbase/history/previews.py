"""How states of a node differ, for people who want to see before they do."""

from collections.abc import Mapping

from contextbase.compare import CompareLimits, FileDiff, Side, compare
from contextbase.compare.engine import LITTLE, Compared, compare_all
from contextbase.compute.ports import Compute
from contextbase.db.database import Database
from contextbase.history.contents import ContentLoader
from contextbase.history.inverse import State
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash
from contextbase.merge import EntryKind

__all__ = ["StateDiffs"]


class StateDiffs:
    def __init__(self, *, database: Database, contents: ContentLoader, compute: Compute) -> None:
        self._database = database
        self._compute = compute
        self._contents = contents
        self._limits = CompareLimits()

    async def between(
        self, caller: Caller, old: State | None, new: State | None, made: Mapping[ContentHash, bytes] | None = None
    ) -> FileDiff:
        """`made` are contents that are not stored."""
        states = [state for state in (old, new) if state is not None]
        known = dict(made or {})
        names = [
            state.content
            for state in states
            if state.content is not None and state.content not in known and state.size <= self._limits.text_bytes
        ]
        if names:
            async with self._database.connection() as connection:
                known |= await self._contents.load(connection, names)
        path = states[-1].path if states else ""
        file = Compared(_side(old, known), _side(new, known), path, old.path if old else None, self._limits)
        if file.size <= LITTLE:
            return compare(file.old, file.new, path=path, old_path=file.old_path)
        [diff] = await self._compute.run(caller.principal.id, compare_all, [file])
        return diff


def _side(state: State | None, contents: Mapping[ContentHash, bytes]) -> Side | None:
    if state is None:
        return None
    return Side(
        content=None if state.content is None else contents.get(state.content),
        size=state.size,
        hash=state.content,
        kind=EntryKind(state.kind),
        executable=state.executable,
    )
