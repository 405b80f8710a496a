"""The applications that answer a sandbox's streams, by the kind that a stream names when it is opened."""

from contextbase.models.http_stream import AsgiApp

__all__ = ["StreamApps"]


class StreamApps:
    """Filled while the server starts. Layers above register theirs: whoever holds the channel cannot import them."""

    def __init__(self) -> None:
        self._apps: dict[str, AsgiApp] = {}

    def register(self, kind: str, app: AsgiApp) -> None:
        self._apps[kind] = app

    def find(self, kind: str) -> AsgiApp | None:
        return self._apps.get(kind)
