"""Turns rows into what a reader gets: filtered, bounded, with the cursor to go on from."""

from collections.abc import Sequence

from contextbase.ids import Seq
from contextbase.streams.feed_model import Cursor, FeedCommit, FeedHeads, FeedItem, FeedPage, Viewpoint
from contextbase.streams.model import StreamEvent

__all__ = ["page_of"]


def page_of(
    commits: Sequence[FeedCommit],
    events: Sequence[StreamEvent],
    *,
    viewpoint: Viewpoint,
    heads: FeedHeads,
    after: Cursor,
    limit: int,
) -> FeedPage:
    """Of the commits and events that directly follow a cursor, at most `limit` that can be seen from a viewpoint.

    What cannot be seen is passed over and leaves no trace but the cursor. The lists hold all there is up to the
    heads, or at least `limit` each.
    """
    items: list[FeedItem] = []
    seq, number = after.seq, after.event
    for commit in commits:
        if len(items) == limit:
            break
        seq = commit.seq
        if (seen := commit.seen(viewpoint)) is not None:
            items.append(FeedItem(cursor=Cursor(epoch=after.epoch, seq=seq, event=number), body=seen))
    for event in events:
        if len(items) == limit:
            break
        number = event.number
        if viewpoint.shows(event):
            items.append(FeedItem(cursor=Cursor(epoch=after.epoch, seq=seq, event=number), body=event))
    if len(items) < limit and len(events) < limit:
        number = max(number, heads.event)  # what is missing up to there was pruned
    cursor = Cursor(epoch=after.epoch, seq=Seq(seq), event=number)
    return FeedPage(items=tuple(items), cursor=cursor, more=seq < heads.seq or number < heads.event)
