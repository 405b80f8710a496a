"""The typed client of a contextbase server."""

from contextbase.sdk.client import Client

__all__ = ["Client"]
