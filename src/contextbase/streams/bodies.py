"""Payloads too large for a row: the whole is a blob, and the row has a preview."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from contextbase.errors import InvalidInput, TooLarge
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.streams.model import EventBody, NewEvent
from contextbase.streams.repository import encoded

__all__ = ["LARGEST_BODY_BYTES", "LARGEST_PAYLOAD_BYTES", "BodyContent", "EventBodies", "preview_of"]

LARGEST_PAYLOAD_BYTES: Final = 8 * 1024
"""A payload with more bytes of JSON is stored as a blob."""

LARGEST_BODY_BYTES: Final = 32 * 1024 * 1024
_LONGEST_KIND: Final = 100
_MOST_PREVIEW_BYTES: Final = 2048
_MOST_PREVIEW_TEXT: Final = 500
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # an escaped NUL, not a backslash that is followed by u0000


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyContent:
    """An event's whole payload, to be read piece by piece."""

    body: EventBody
    pieces: AsyncGenerator[bytes, None]


class EventBodies:
    def __init__(self, catalog: BlobCatalog) -> None:
        self._catalog = catalog

    async def stored(self, events: Iterable[NewEvent]) -> list[NewEvent]:
        """The same events, ready to be appended: large payloads are in the blob store, and previews in their place.

        Raises `InvalidInput` for what is not a payload, `TooLarge` for one over 32 MiB."""
        return [await self._stored(event) for event in events]

    async def _stored(self, event: NewEvent) -> NewEvent:
        if event.body is not None:
            return event
        content = _checked(event)
        if len(content) <= LARGEST_PAYLOAD_BYTES:
            return event
        blob = await self._catalog.put_bytes(content)
        return replace(event, payload=preview_of(event.payload), body=EventBody(hash=blob.hash, size=blob.size))

    def content(self, body: EventBody) -> BodyContent:
        return BodyContent(body=body, pieces=self._catalog.get(body.hash))


def preview_of(payload: Mapping[str, object]) -> dict[str, object]:
    """What of a large payload fits into a row: long texts are cut short, other large values are left out."""
    preview: dict[str, object] = {}
    left = _MOST_PREVIEW_BYTES
    for name, value in payload.items():
        short = value
        if isinstance(value, str) and len(value) > _MOST_PREVIEW_TEXT:
            short = value[:_MOST_PREVIEW_TEXT] + "…"
        size = len(encoded({name: short}).encode())
        if size <= left:
            preview[name] = short
            left -= size
    return preview


def _checked(event: NewEvent) -> bytes:
    """The payload as JSON."""
    if not event.kind or len(event.kind) > _LONGEST_KIND:
        raise InvalidInput(f"The kind of an event has 1 to {_LONGEST_KIND} characters.")
    try:
        text = encoded(event.payload)
        content = text.encode()
    except (TypeError, ValueError) as error:  # ValueError: also a surrogate that stands alone
        raise InvalidInput(f"The payload of the event '{event.kind}' is not JSON: {error}.") from error
    if len(content) > LARGEST_BODY_BYTES:
        raise TooLarge(
            f"The payload of the event '{event.kind}' has {len(content)} bytes of JSON; "
            f"{LARGEST_BODY_BYTES} is the most. Put the content into a file, and name it in the event."
        )
    if _NUL.search(text):
        raise InvalidInput(f"The payload of the event '{event.kind}' has a NUL character; leave it out.")
    return content
