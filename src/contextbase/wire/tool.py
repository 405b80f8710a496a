"""Bodies about the agent tools."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ToolAnswer", "ToolInvocation", "ToolList", "ToolView"]


class ToolView(BaseModel):
    name: str
    description: str
    input_schema: dict[str, Any]
    read_only: bool
    destructive: bool = Field(description="Whether it may remove or replace what is there.")


class ToolList(BaseModel):
    instructions: str = Field(description="What an agent should know that has these tools.")
    tools: list[ToolView]


class ToolInvocation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    arguments: dict[str, Any] = Field(default_factory=dict)
    message_id: str | None = Field(
        default=None, max_length=200, description="Of the conversation's message that asked for it; kept in the trail."
    )


class ToolAnswer(BaseModel):
    text: str = Field(description="What a model reads.")
    note: str = Field(description="What a model is told beside it, such as how to read on. May be empty.")
    data: dict[str, Any] = Field(description="The same for programs.")
