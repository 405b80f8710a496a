"""Keeps open items true: merges them again when the head moves, and closes those whose conflict went away."""

import logging
from dataclasses import dataclass
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import Conflict, ContentPurged, ContextbaseError, Forbidden
from contextbase.gate.model import AUTO_MERGE, ReviewState
from contextbase.ids import ProjectId, Seq
from contextbase.merge import TreeConflict
from contextbase.review.adviser import Adviser
from contextbase.review.assessment import Assessment, Assessments
from contextbase.review.callers import SystemPrincipal
from contextbase.review.closer import ReviewCloser, Settling
from contextbase.review.model import CRITICAL, Choice, ReviewDecision, ReviewItem
from contextbase.review.question import name_of
from contextbase.review.repository import ReviewRepository
from contextbase.review.resolution import changes_of

__all__ = ["Upkeep"]

_log = logging.getLogger(__name__)

_MOST_AT_ONCE: Final = 100
_ABOUT_OTHERS: Final = frozenset({TreeConflict.FILE_AND_FOLDER.value, TreeConflict.FOLDER_NOT_EMPTY.value})


@dataclass(frozen=True, kw_only=True, slots=True)
class Upkeep:
    database: Database
    repository: ReviewRepository
    standings: Assessments
    desk: ReviewCloser
    system: SystemPrincipal
    adviser: Adviser | None = None

    async def keep_up(self) -> None:
        """Look at what is stale, and ask for advice on what is left."""
        await self.sweep()
        if self.adviser is not None:
            await self.adviser.advise()

    async def sweep(self) -> int:
        """Look at open items whose project has moved on, those that wait longest first; returns how many."""
        async with self.database.connection() as connection:
            stale = await self.repository.stale(connection, _MOST_AT_ONCE)
        for project_id, review_id, head in stale:
            async with self.database.connection() as connection:
                item = await self.repository.one(connection, project_id, review_id)
            if item is None:
                continue
            try:
                await self.refreshed(project_id, item, head)
            except ContextbaseError as error:
                _log.warning("a review item was not looked at", extra={"review_id": str(review_id), "code": error.code})
        return len(stale)

    async def refreshed(self, project_id: ProjectId, item: ReviewItem, head: Seq) -> ReviewItem:
        """The item as it stands against the head, read before it or with it; that may have closed it."""
        if item.state is not ReviewState.OPEN or item.checked_seq >= head:
            return item
        if not await self._is_touched(project_id, item, head):
            return item
        standing = await self.standings.of(project_id, item)
        try:
            await self._settle(project_id, standing)
        except (Conflict, Forbidden, ContentPurged) as error:  # somebody was quicker, or it takes a person after all
            _log.info("a review item did not close itself", extra={"review_id": str(item.id), "code": error.code})
            await self._store(project_id, standing)
        async with self.database.connection() as connection:
            return await self.repository.one(connection, project_id, item.id) or item

    async def _is_touched(self, project_id: ProjectId, item: ReviewItem, head: Seq) -> bool:
        """Most of what happens in a project has nothing to do with an item: then that is all that is noted."""
        if item.reason in _ABOUT_OTHERS:
            return True
        async with self.database.connection() as connection:
            touched = await self.repository.is_touched(connection, project_id, item)
            if not touched:
                await self.repository.mark_checked(connection, project_id, item.id, head)
        return touched

    async def _settle(self, project_id: ProjectId, standing: Assessment) -> None:
        item = standing.item
        if standing.is_done:
            caller = await self.system.caller(project_id)
            await self.desk.close(
                caller,
                project_id,
                item,
                ReviewState.OBSOLETE,
                how=Settling(strategy=AUTO_MERGE, told=": the head has all of it"),
            )
        elif standing.is_clean and not standing.needs_person:
            await self.desk.commit(
                await self.system.caller(project_id),
                project_id,
                standing,
                changes_of(standing, ReviewDecision(choice=Choice.THEIRS)),
                message=f"Merged {item.path} by {item.author.name} after the conflict went away",
                state=ReviewState.OBSOLETE,
                how=Settling(strategy=AUTO_MERGE, told=": it was merged, because the conflict went away"),
            )
        else:
            await self._store(project_id, standing)

    async def _store(self, project_id: ProjectId, standing: Assessment) -> None:
        item, settled = standing.item, standing.settled
        reason = str(settled.conflict) if item.reason != CRITICAL and settled.conflict is not None else item.reason
        about = name_of(standing)
        async with self.database.connection() as connection:
            await self.repository.refresh(
                connection,
                project_id,
                item.id,
                standing.seq,
                ours_number=None if standing.ours is None else standing.ours.number,
                conflicts=standing.conflicts,
                reason=reason,
                keeps_suggestion=item.suggestion is not None and item.suggestion.about == about,
            )
