"""Answers that are read off the server's own values, attribute by attribute."""

from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict

from contextbase.ids import ContentHash

__all__ = ["CONTENT_HASH", "SIDE_VERSION_ID", "WAY_IN", "AnswerView", "HashText"]

# What the wire calls otherwise than the server.
CONTENT_HASH = AliasChoices("hash", "content_hash")
SIDE_VERSION_ID = AliasChoices("side_version_id", "side_id")
WAY_IN = AliasChoices("operator_type", "way_in")


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, ContentHash) else value


HashText = Annotated[str, BeforeValidator(_as_text)]


class AnswerView(BaseModel):
    """`model_validate` takes a value of the server that has these attributes."""

    model_config = ConfigDict(from_attributes=True)
