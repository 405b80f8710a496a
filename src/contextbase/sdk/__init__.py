"""The typed client of a contextbase server."""

from contextbase.sdk.client import Client
from contextbase.sdk.feed import FeedReader

__all__ = ["Client", "FeedReader"]
