"""RFC 9457 problem details: the body of every error answer."""

from pydantic import BaseModel, Field

__all__ = ["PROBLEM_TYPE", "Problem"]

PROBLEM_TYPE = "application/problem+json"


class Problem(BaseModel):
    type: str = "about:blank"
    title: str = Field(description="What kind of error this is.")
    status: int
    code: str = Field(description="Stable, for machines: see errors.py.")
    detail: str = Field(description="What happened, to which thing, and what to do next.")
    trace_id: str = Field(description="Also in the server's log lines of this request.")
    details: dict[str, object] = Field(default_factory=dict)
