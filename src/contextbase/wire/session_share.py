"""Bodies about sharing sessions."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from contextbase.agent_vocabulary import ShareLevel
from contextbase.wire.answer import AnswerView

__all__ = ["SessionShareList", "SessionSharePut", "SessionShareView"]


class SessionSharePut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    level: ShareLevel = Field(
        description="`read`: see all that is said and done. `drive`: also send messages, stop runs and answer what the "
        "agent asks; it works with the owner's rights."
    )


class SessionShareView(AnswerView):
    user: str = Field(description="The slug.")
    display_name: str
    level: ShareLevel
    shared_at: datetime


class SessionShareList(BaseModel):
    shares: list[SessionShareView] = Field(description="By slug.")
