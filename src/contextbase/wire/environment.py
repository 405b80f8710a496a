"""What a project's sessions find in their sandboxes beside its files."""

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["EnvironmentBody", "EnvironmentView"]


class EnvironmentBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    image: str | None = Field(
        default=None, min_length=1, max_length=255, description="An image of Docker; left out: the machine's own."
    )
    setup: str = Field(
        default="",
        max_length=65_536,
        description="A script for /bin/sh that installs what agents need below HOME. It is run once on each machine.",
    )


class EnvironmentView(EnvironmentBody):
    key: str = Field(description="Of the image and the script: what came of a script is kept by it.")
