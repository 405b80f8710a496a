"""Bodies of chats: what a chat client sends, and its history."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from contextbase.vocabulary import SendMode
from contextbase.wire.commit import ProjectName
from contextbase.wire.session import RunView, SessionView

__all__ = ["ChatCreate", "ChatId", "ChatMessage", "ChatMessagePage", "ChatPage", "ChatStart", "ChatStopView"]

ChatId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class ChatMessage(BaseModel):
    """A UIMessage of the AI SDK. Fields that are not named here are passed over."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = Field(default=None, max_length=200)
    role: str = "user"
    parts: list[dict[str, Any]] | None = Field(default=None, max_length=1000)
    content: str | None = Field(default=None, description="For clients without parts.")


class ChatStart(BaseModel):
    """What a chat that is new is made of; passed over for one that exists. Other fields are passed over."""

    model_config = ConfigDict(extra="ignore")

    project: ProjectName | None = Field(default=None, description="Null: the token's, or the only one that there is.")
    provider: str | None = Field(default=None, description="The agent program.", min_length=1, max_length=200)
    model: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")


class ChatCreate(ChatStart):
    id: ChatId | None = Field(
        default=None,
        description="The chat, by the session's id or by a name of your own; an unknown one makes a chat. `chatId` is "
        "the same.",
        validation_alias=AliasChoices("id", "chatId"),
    )
    messages: list[ChatMessage] | None = Field(
        default=None, description="The newest message of the user is taken, and nothing else."
    )
    message: ChatMessage | str | None = Field(default=None, description="The same, without the history.")
    execution_profile: str | None = Field(
        default=None,
        description="How the agent works.",
        min_length=1,
        max_length=200,
        validation_alias="executionProfile",
    )
    provider_options: dict[str, Any] = Field(
        default={}, description="For the agent program.", max_length=100, validation_alias="providerOptions"
    )
    agent: str | None = Field(default=None, description="build or plan; `executionProfile` beats it.", max_length=200)
    mode: SendMode = Field(default=SendMode.QUEUE, description="While a run works, as for runs.")
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"


class ChatPage(BaseModel):
    chats: list[SessionView] = Field(description="Newest first.")
    next_before: UUID | None = Field(description="Pass as `before` for the next page; null on the last.")


class ChatMessagePage(BaseModel):
    id: UUID = Field(description="The session's.")
    messages: list[dict[str, Any]] = Field(description="UIMessages, the newest of the chat, in order.")
    next_before: int | None = Field(description="Pass as `before` for those before them; null: there are none.")


class ChatStopView(BaseModel):
    run: RunView | None = Field(description="That is being stopped; null: none worked.")
