"""What follows from a message: the title of a new session, and what tells it from another with the same key."""

import hashlib
import json
from typing import Final

from contextbase.sessions.model import RunWishes

__all__ = ["request_hash_of", "title_of"]

_TITLE_LENGTH: Final = 80


def request_hash_of(prompt: str, wishes: RunWishes) -> bytes:
    told: list[object] = [prompt, wishes.model]
    if wishes != RunWishes(model=wishes.model):
        told += [wishes.provider, wishes.profile, dict(wishes.options)]
        told += [[file.name, file.hash.hex()] for file in wishes.attachments]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()


def title_of(prompt: str) -> str:
    """The first words of the first message."""
    words = " ".join("".join(char if char.isprintable() else " " for char in prompt[:400]).split())
    return words if len(words) <= _TITLE_LENGTH else words[: _TITLE_LENGTH - 1] + "…"
