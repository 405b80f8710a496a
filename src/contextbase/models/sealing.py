"""Keys of model services at rest: encrypted with a key that is made from the server's secret and never stored."""

import os
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from contextbase.errors import Misconfigured

__all__ = ["KeySealer"]

_PURPOSE: Final = b"contextbase model upstream keys 1"
_NONCE_BYTES: Final = 12


class KeySealer:
    def __init__(self, server_secret: bytes) -> None:
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(server_secret)
        self._cipher = AESGCM(key)

    def seal(self, owner: UUID, secret: str) -> bytes:
        """What is sealed for one row cannot be opened for another."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret.encode(), owner.bytes)

    def open(self, owner: UUID, sealed: bytes) -> str:
        """Raises `Misconfigured` if this server's secret is another than the one it was sealed with."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], owner.bytes).decode()
        except InvalidTag:
            raise Misconfigured(
                "The key of a model service cannot be opened: the server's audit key is another than when it was "
                "added. Restore audit.key or CONTEXTBASE_AUDIT_KEY, or add the service again."
            ) from None
