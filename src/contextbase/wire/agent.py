"""Bodies about the agent programs that sessions can use."""

from pydantic import BaseModel, Field

from contextbase.agents.model import Capability
from contextbase.agents.options import OptionKind
from contextbase.wire.answer import AnswerView

__all__ = ["AgentList", "AgentOptionView", "AgentView"]


class AgentOptionView(AnswerView):
    """Something that people can set for an agent program."""

    name: str
    kind: OptionKind
    about: str
    choices: list[str] = Field(description="Of the kind `choice`.")


class AgentView(AnswerView):
    name: str = Field(description="Pass as a session's `provider`.")
    also_called: list[str] = Field(description="Other spellings that are taken.")
    capabilities: list[Capability]
    is_installed: bool = Field(description="On the server that answers.")
    version: str | None = Field(description="Of the installed package, as its installer wrote it down.")
    how_to_install: str | None = Field(description="Null: it is installed.")
    options: list[AgentOptionView] = Field(description="Pass as the `options` of a session or a message.")


class AgentList(BaseModel):
    agents: list[AgentView]
    default: str = Field(description="The provider of sessions that name none.")
