"""Bodies about the events of several scopes."""

from typing import Annotated, Final

from pydantic import BaseModel, Field

from contextbase.wire.feed import CommitItem, EventItem

__all__ = ["MOST_SCOPES", "SCOPE_PATTERN", "ScopedCommitItem", "ScopedEventItem", "ScopedItemView", "ScopedPageView"]

MOST_SCOPES: Final = 16
_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
SCOPE_PATTERN: Final = (
    rf"^(project:[a-zA-Z0-9][a-zA-Z0-9._-]{{0,99}}|(session|workspace):{_UUID}|user:(me|{_UUID})|system)$"
)


class ScopedCommitItem(CommitItem):
    scope: str = Field(description="As the reader wrote it.")


class ScopedEventItem(EventItem):
    scope: str = Field(description="As the reader wrote it.")


ScopedItemView = Annotated[ScopedCommitItem | ScopedEventItem, Field(discriminator="type")]


class ScopedPageView(BaseModel):
    items: list[ScopedItemView] = Field(description="In order within each scope.")
    cursor: str = Field(description="Pass as `after` to go on, in all scopes.")
    more: bool = Field(description="Whether there is more already.")
