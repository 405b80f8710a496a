"""A request's body as the gateway reads it. What is sent on is the bytes, so both readings must agree."""

import json
from typing import Any, Final

from contextbase.models.dialects import GatewayError, GatewayProblem

__all__ = ["read_document"]

_DECIDING: Final = frozenset({"model", "max_tokens", "max_output_tokens", "max_completion_tokens", "stream"})


def read_document(body: bytes) -> dict[str, Any]:
    """Raises `GatewayError` unless it is one JSON object that names each deciding field once: an upstream might read
    the first of two models, and we the last."""
    try:
        document = json.loads(body) if _is_plain(body) else json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise GatewayError(GatewayProblem.BAD_REQUEST, "The request is not a JSON object.") from None
    if not isinstance(document, dict) or not isinstance(document.get("model"), str):
        raise GatewayError(GatewayProblem.BAD_REQUEST, "The request must be a JSON object that names a model.")
    return document


def _is_plain(body: bytes) -> bool:
    """Whether no field can be there twice; most bodies are like this, and hooks take long."""
    return b"\\u00" not in body and all(body.count(b'"%s"' % name.encode()) <= 1 for name in _DECIDING)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        for name in _DECIDING & found.keys():
            if names.count(name) > 1:
                raise GatewayError(GatewayProblem.BAD_REQUEST, f"The request names '{name}' twice.")
    return found
