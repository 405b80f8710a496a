"""All that a reviewer needs to see of an item: its three sides, the merge as it is now, what is contested."""

from typing import Final

from contextbase.errors import ContentPurged, InvalidInput
from contextbase.gate.model import ReviewState
from contextbase.ids import ContentHash, ProjectId
from contextbase.merge import Verdict, render_markers
from contextbase.review.assessment import Assessment, Assessments
from contextbase.review.model import Comment, ReviewItem, Shown, ShownSide
from contextbase.review.question import name_of
from contextbase.review.resolution import contested, put_together
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind, Version

__all__ = ["Showing"]

LARGEST_SHOWN: Final = 1024 * 1024


class Showing:
    def __init__(self, *, standings: Assessments, catalog: BlobCatalog) -> None:
        self._standings = standings
        self._catalog = catalog

    async def of(
        self, project_id: ProjectId, item: ReviewItem, *, message: str, comments: tuple[Comment, ...]
    ) -> Shown:
        """A closed item is shown as it was left: without a draft."""
        standing = await self._standings.of(project_id, item)
        is_open = item.state is ReviewState.OPEN
        return Shown(
            item=item,
            message=message,
            epoch=standing.epoch,
            ours_seq=standing.seq,
            base=await self._side(standing.base),
            ours=await self._side(standing.ours),
            theirs=await self._theirs(item),
            draft=_draft(standing, item) if is_open else None,
            conflicts=standing.conflicts if is_open else item.conflicts,
            by_conflict=is_open and contested(standing) is not None,
            suggested=_suggested(standing) if is_open else None,
            comments=comments,
        )

    async def _side(self, version: Version | None) -> ShownSide | None:
        if version is None:
            return None
        return ShownSide(
            path=version.path,
            kind=version.kind,
            number=version.number,
            content_hash=version.content_hash,
            size=version.size,
            content=await self._content(version.content_hash, version.size),
        )

    async def _theirs(self, item: ReviewItem) -> ShownSide | None:
        if item.kind is Kind.DELETED:
            return None
        return ShownSide(
            path=item.path,
            kind=item.kind,
            number=None,
            content_hash=item.content_hash,
            size=item.size,
            content=await self._content(item.content_hash, item.size),
        )

    async def _content(self, name: ContentHash | None, size: int) -> bytes | None:
        if name is None or size > LARGEST_SHOWN:
            return None
        try:
            return await self._catalog.read(name)
        except ContentPurged:
            return None


def _draft(standing: Assessment, item: ReviewItem) -> bytes | None:
    """The file as it would be, with markers at the contested places; None where there is no text to draw."""
    settled = standing.settled
    if settled.verdict is Verdict.CONFLICT:
        ours, theirs = f"ours: the head, {standing.seq}", f"theirs: {item.author.name}"
        draft = None if standing.merged is None else render_markers(standing.merged, ours=ours, theirs=theirs)
    else:
        content = None if settled.entry is None else settled.entry.content
        draft = None if content is None else standing.contents.get(content)
    return None if draft is None or len(draft) > LARGEST_SHOWN else draft


def _suggested(standing: Assessment) -> bytes | None:
    suggestion = standing.item.suggestion
    if suggestion is None or suggestion.texts is None or suggestion.about != name_of(standing):
        return None
    try:
        return put_together(standing, suggestion.texts)
    except InvalidInput:
        return None
