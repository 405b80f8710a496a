"""The review queue as its callers know it: list, show, claim, comment, resolve, reject.

An item is for those who may see every place it is about. Deciding it takes the right to write there; a critical file is
for people alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from contextbase.audit.model import AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, CursorOutdated, Forbidden, InvalidInput, NotFound
from contextbase.gate.messages import readable_messages
from contextbase.gate.model import MANUAL, RequestedChange, ReviewState
from contextbase.gate.service import Gate, OpenedProject
from contextbase.identity.levels import Level, PathAuthority
from contextbase.identity.model import Action, Caller, PrincipalKind, PrincipalName
from contextbase.ids import Clock, PrincipalId, ProjectId, Seq
from contextbase.reads.commit_log import principals_named
from contextbase.review.assessment import Assessment, Assessments
from contextbase.review.closer import ReviewCloser, Settling
from contextbase.review.detail import Showing
from contextbase.review.model import CRITICAL, Choice, Comment, ItemFilter, ItemPage, ReviewDecision, ReviewItem, Shown
from contextbase.review.question import name_of
from contextbase.review.repository import ReviewRepository
from contextbase.review.resolution import changes_of
from contextbase.review.upkeep import Upkeep
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.repository import StreamRepository

__all__ = ["ReviewService"]

LONGEST_COMMENT: Final = 10_000
_PAGE: Final = 200
_MOST_SCANNED: Final = 5_000  # items looked at for one page, if most of them are hidden
_MOST_REFRESHED: Final = 20  # of a page; the sweep gets to the others

_TOLD: Final = {
    Choice.OURS: ": the head stays as it is",
    Choice.THEIRS: ": the writer's version was taken",
    Choice.EDITED: " with an edited version",
    Choice.PICKED: ", conflict by conflict",
    Choice.SUGGESTED: ": the resolver's suggestion was taken",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewService:
    database: Database
    gate: Gate
    repository: ReviewRepository
    standings: Assessments
    showing: Showing
    desk: ReviewCloser
    upkeep: Upkeep
    audit: AuditRepository
    clock: Clock
    hint: Callable[[ProjectId], None] = lambda _: None
    _streams: StreamRepository = field(init=False, default_factory=StreamRepository)

    async def page(
        self,
        caller: Caller,
        project_id: ProjectId,
        wanted: ItemFilter,
        *,
        author: PrincipalName | None = None,
        claimed_by: PrincipalName | None = None,
        limit: int = 50,
    ) -> ItemPage:
        """Items newest first. A page may be short and still name a next one."""
        caller.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            opened = await self.gate.opened(connection, caller, project_id)
            wanted = replace(
                wanted,
                authors=await _named(connection, author),
                claimed_by=await _named(connection, claimed_by),
            )
            found, next_before = await self._visible(connection, project_id, wanted, opened.authority, limit)
        stale = [item for item in found if item.checked_seq < opened.seq][:_MOST_REFRESHED]
        now = {item.id: await self.upkeep.refreshed(project_id, item, opened.seq) for item in stale}
        items = (now.get(item.id, item) for item in found)
        kept = tuple(item for item in items if wanted.state in (None, item.state))
        return ItemPage(items=kept, next_before=next_before)

    async def show(self, caller: Caller, project_id: ProjectId, review_id: UUID) -> Shown:
        """An item as it stands against the head of this moment."""
        item, opened = await self._found(caller, project_id, review_id)
        item = await self.upkeep.refreshed(project_id, item, opened.seq)
        async with self.database.connection() as connection:
            comments = await self.repository.comments(connection, project_id, item.id)
            readable = await readable_messages(connection, project_id, [item.seq], opened.authority)
            message = await self.repository.message(connection, project_id, item.seq) if readable else ""
        return await self.showing.of(project_id, item, message=message, comments=tuple(comments))

    async def claim(
        self, caller: Caller, project_id: ProjectId, review_id: UUID, *, take_over: bool = False
    ) -> ReviewItem:
        """Say that one is on it; raises `Conflict` when somebody else is, unless it is taken over."""
        item, _ = await self._open(caller, project_id, review_id)
        async with self.database.connection() as connection:
            claimed = await self.repository.claim(
                connection, project_id, review_id, caller.principal.id, take_over=take_over
            )
        if not claimed and item.claim is not None:
            raise Conflict(
                f"{item.claim.by} has claimed it since {item.claim.at:%Y-%m-%d %H:%M} UTC; "
                "take it over if that was forgotten."
            )
        if not claimed:
            raise _not_open(item)
        return (await self._found(caller, project_id, review_id))[0]

    async def release(self, caller: Caller, project_id: ProjectId, review_id: UUID) -> ReviewItem:
        """Take one's claim back; raises `Conflict` if it is not one's own."""
        await self._open(caller, project_id, review_id)
        async with self.database.connection() as connection:
            released = await self.repository.release(connection, project_id, review_id, caller.principal.id)
        if not released:
            raise Conflict("You have not claimed it.")
        return (await self._found(caller, project_id, review_id))[0]

    async def comment(self, caller: Caller, project_id: ProjectId, review_id: UUID, text: str) -> Comment:
        """Add to what is said about an item, open or closed; its author is told through the feed."""
        caller.require(Action.WRITE, project_id)
        item, _ = await self._found(caller, project_id, review_id)
        async with self.database.transaction() as connection:
            await self.repository.hold_project(connection, project_id)
            comment = await self._say(connection, caller, project_id, item, text)
        self.hint(project_id)
        return comment

    async def resolve(
        self,
        caller: Caller,
        project_id: ProjectId,
        review_id: UUID,
        decision: ReviewDecision,
    ) -> ReviewItem:
        """Decide it. What others changed since the head that was shown is merged with the decision; where that
        conflicts, it raises `Conflict` and nothing is changed: nobody decides about what they have not seen."""
        item, opened = await self._open(caller, project_id, review_id)
        _require_decider(caller, item, opened)
        if decision.epoch not in (None, opened.epoch):
            raise CursorOutdated("The project was restored since the item was shown; look at it again.")
        changes: tuple[RequestedChange, ...] = ()
        how = Settling(strategy=MANUAL, told=_TOLD[decision.choice])
        if decision.choice is not Choice.OURS:
            standing = await self.standings.of(project_id, item, _shown_at(item, decision))
            changes = self._changes(standing, decision, opened.authority)
        if changes:
            await self.desk.commit(
                caller,
                project_id,
                standing,
                changes,
                message=decision.message or f"Resolved {item.path} by {item.author.name}: {decision.choice}",
                state=ReviewState.RESOLVED,
                how=how,
            )
        else:
            await self.desk.close(caller, project_id, item, ReviewState.RESOLVED, how=how)
        return (await self._found(caller, project_id, review_id))[0]

    async def reject(self, caller: Caller, project_id: ProjectId, review_id: UUID, *, reason: str = "") -> ReviewItem:
        """Close it without taking anything of it in. Its author may, too: it takes its change back."""
        item, opened = await self._open(caller, project_id, review_id)
        if caller.principal.id != item.author.id:
            _require_decider(caller, item, opened)
        async with self.database.transaction() as connection:
            await self.repository.hold_project(connection, project_id)
            if reason:
                await self._say(connection, caller, project_id, item, reason)
            await self.desk.close_within(
                connection,
                caller,
                project_id,
                item,
                ReviewState.REJECTED,
                how=Settling(strategy=MANUAL, told=": nothing of it was taken in"),
            )
        self.hint(project_id)
        return (await self._found(caller, project_id, review_id))[0]

    # -- what they have in common

    async def _visible(
        self, connection: Connection, project_id: ProjectId, wanted: ItemFilter, authority: PathAuthority, limit: int
    ) -> tuple[list[ReviewItem], UUID | None]:
        found: list[ReviewItem] = []
        scanned = 0
        while True:
            page = await self.repository.page(connection, project_id, wanted, limit=_PAGE)
            for item in page:
                scanned += 1
                if authority.shows_all(item.places):
                    found.append(item)
                if len(found) == limit or scanned == _MOST_SCANNED:
                    return found, item.id
            if len(page) < _PAGE:
                return found, None
            wanted = replace(wanted, before=page[-1].id)

    async def _found(self, caller: Caller, project_id: ProjectId, review_id: UUID) -> tuple[ReviewItem, OpenedProject]:
        caller.require(Action.READ, project_id)  # an item holds contents, and every answer shows the item
        async with self.database.connection() as connection:
            opened = await self.gate.opened(connection, caller, project_id)
            item = await self.repository.one(connection, project_id, review_id)
        if item is None or not opened.authority.shows_all(item.places):
            raise NotFound(f"There is no review item {review_id} that you may see.")
        return item, opened

    async def _open(self, caller: Caller, project_id: ProjectId, review_id: UUID) -> tuple[ReviewItem, OpenedProject]:
        caller.require(Action.WRITE, project_id)
        item, opened = await self._found(caller, project_id, review_id)
        if item.state is not ReviewState.OPEN:
            raise _not_open(item)
        return item, opened

    def _changes(
        self, standing: Assessment, decision: ReviewDecision, authority: PathAuthority
    ) -> tuple[RequestedChange, ...]:
        suggestion = standing.item.suggestion
        suggested: tuple[bytes, ...] = ()
        if decision.choice is Choice.SUGGESTED:
            if suggestion is None or suggestion.texts is None or suggestion.about != name_of(standing):
                raise Conflict("There is no suggestion for it as it stands now.")
            suggested = suggestion.texts
        if decision.choice is Choice.THEIRS and not authority.shows_all(standing.in_the_way):
            raise Forbidden(f"Something is in the way of {standing.settled.path} that you may not change.")
        return changes_of(standing, decision, suggested=suggested)

    async def _say(
        self,
        connection: Connection,
        caller: Caller,
        project_id: ProjectId,
        item: ReviewItem,
        text: str,
    ) -> Comment:
        if not text.strip() or len(text.encode()) > LONGEST_COMMENT or "\x00" in text:
            raise InvalidInput(f"A comment has 1 to {LONGEST_COMMENT} bytes and no NUL.")
        comment = await self.repository.add_comment(connection, project_id, item.id, caller.principal, text)
        event = NewEvent(
            kind="review.commented",
            principal_id=caller.principal.id,
            path=item.path,
            payload={
                "review_id": str(item.id),
                "author": str(item.author),
                "number": comment.number,
            },
        )
        await self._streams.append(connection, Scope.project(project_id), [event])
        entry = AuditEntry(
            at=self.clock.now(),
            by=caller.actor,
            action="review.comment",
            summary=f"{caller.principal.name} commented on the review of {item.path}.",
            path=item.path,
            node_id=item.node_id,
            details={"review_id": str(item.id), "number": comment.number},
        )
        await self.audit.append(connection, project_id, [entry])
        return comment


def _require_decider(caller: Caller, item: ReviewItem, opened: OpenedProject) -> None:
    if any(opened.authority.level(place) < Level.READ_WRITE_KEEP for place in (item.path, *item.nodes_now)):
        raise Forbidden(f"You may not change {item.path}, so you cannot decide this item.")
    critical = item.reason == CRITICAL or any(map(opened.policy.is_critical, item.places))
    if critical and caller.principal.kind is not PrincipalKind.USER:
        raise Forbidden(f"{item.path} is critical: only a person can decide this item.")


def _shown_at(item: ReviewItem, decision: ReviewDecision) -> Seq | None:
    """The head that the reviewer has seen, as far as is known; None: it does not matter."""
    if decision.ours_seq is not None and decision.ours_seq < item.seq:
        raise InvalidInput(f"The item came with commit {item.seq}: it did not exist at {decision.ours_seq}.")
    if decision.ours_seq is not None:
        return decision.ours_seq
    if decision.choice is Choice.EDITED:
        raise InvalidInput("An edited file needs ours_seq: the head it was made from, as the item was shown.")
    # A suggestion is for certain stretches, and is refused when they are others by now.
    return None if decision.choice is Choice.SUGGESTED else item.seq


def _not_open(item: ReviewItem) -> Conflict:
    return Conflict(f"The review item is {item.state} already.", state=str(item.state))


async def _named(connection: Connection, name: PrincipalName | None) -> tuple[PrincipalId, ...] | None:
    return None if name is None else tuple(map(PrincipalId, await principals_named(connection, name)))
