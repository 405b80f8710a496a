"""Names of folders that others may get to see, and that say nothing of what is hidden from whom."""

import hmac
from collections.abc import Iterable
from pathlib import Path

from contextbase.data_folder import DataFolder

__all__ = ["KeyedNames"]


class KeyedNames:
    """Made with a key that stays on this machine (`<root>/names.key`, 0600): without it nobody can try out guesses."""

    def __init__(self, root: Path) -> None:
        root.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._key = DataFolder(root).secret_key("names")

    def name(self, *parts: str) -> str:
        """Equal for equal parts."""
        return _digest(self._key, parts)


def _digest(key: bytes, parts: Iterable[str]) -> str:
    told = b"".join(len(part).to_bytes(8) + part for part in (part.encode() for part in parts))
    return hmac.digest(key, told, "sha256").hex()[:32]
