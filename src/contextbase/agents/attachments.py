"""Files that came with a message, in the form that an agent program's model takes them."""

import base64
from pathlib import Path
from typing import Final

from contextbase.agents.model import AgentAttachment

__all__ = ["encoded_attachment", "is_image", "is_shown"]

_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PDF: Final = "application/pdf"
_LARGEST: Final = 4 << 20  # bytes that go into a request; the agent still has the file


def is_image(attachment: AgentAttachment) -> bool:
    return attachment.media_type in _IMAGES


def is_shown(attachment: AgentAttachment, workspace: Path) -> bool:
    """Whether a model can be given it, and not only told where it is."""
    try:
        size = (workspace / attachment.path).lstat().st_size
    except OSError:
        return False
    return (is_image(attachment) or attachment.media_type == _PDF) and size <= _LARGEST


def encoded_attachment(attachment: AgentAttachment, workspace: Path) -> str:
    """Blocks."""
    with (workspace / attachment.path).open("rb") as file:
        return base64.b64encode(file.read(_LARGEST)).decode()
