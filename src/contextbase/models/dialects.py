"""Errors of ours, as each API writes its own: agent programs show them, and decide by them whether to try again."""

import json
from dataclasses import dataclass
from enum import Enum

from contextbase.models.model import ModelProtocol

__all__ = ["GatewayError", "GatewayProblem", "error_body"]


@dataclass(frozen=True, slots=True)
class _Shape:
    status: int
    anthropic_type: str
    openai_type: str
    openai_code: str


class GatewayProblem(Enum):
    """What went wrong, and the status and types that make a program end its turn, or try again where that may help."""

    BAD_REQUEST = _Shape(400, "invalid_request_error", "invalid_request_error", "invalid_request")
    NO_SUCH_PATH = _Shape(404, "not_found_error", "invalid_request_error", "unknown_url")
    MODEL_NOT_ALLOWED = _Shape(404, "not_found_error", "invalid_request_error", "model_not_found")
    NO_RUN = _Shape(403, "permission_error", "invalid_request_error", "no_run")
    # 402 and 429 would be truer, but programs wait and try again on 429. Nobody repeats a 400.
    BUDGET_EXHAUSTED = _Shape(400, "billing_error", "insufficient_quota", "insufficient_quota")
    UPSTREAM_DOWN = _Shape(502, "api_error", "server_error", "upstream_unavailable")

    @property
    def status(self) -> int:
        return self.value.status


class GatewayError(Exception):
    """Ends a request with an answer in the client's own protocol."""

    def __init__(self, problem: GatewayProblem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


def error_body(protocol: ModelProtocol, problem: GatewayProblem, message: str) -> bytes:
    shape: _Shape = problem.value
    if protocol is ModelProtocol.ANTHROPIC:
        document: dict[str, object] = {"type": "error", "error": {"type": shape.anthropic_type, "message": message}}
    else:
        details = {"message": message, "type": shape.openai_type, "param": None, "code": shape.openai_code}
        document = {"error": details}
    return json.dumps(document).encode()
