"""Files of this machine that go with a message."""

import base64
import mimetypes
from pathlib import Path
from typing import Any

from contextbase.errors import InvalidInput

__all__ = ["attachment_of"]


def attachment_of(path: Path) -> dict[str, Any]:
    """As a message has it. Raises `InvalidInput` for a file that cannot be read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return {"name": path.name, "media_type": kind, "content": base64.b64encode(content).decode()}
