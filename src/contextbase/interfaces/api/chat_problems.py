"""Errors as chat clients read them: problem+json that also has `error`, the sentence for people."""

import json
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from contextbase.errors import ContextbaseError
from contextbase.interfaces.api.json_body import JsonBodyRoute
from contextbase.interfaces.api.problems import (
    error_response,
    http_exception_response,
    invalid_request_response,
    unexpected_problem,
)
from contextbase.wire.problem import PROBLEM_TYPE

__all__ = ["ChatRoute"]

_log = logging.getLogger(__name__)

_KEPT: Final = frozenset({"retry-after", "www-authenticate"})


class ChatRoute(JsonBodyRoute):
    """A route whose every error has `error` and `trace_id`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_error(request: Request) -> Response:
            try:
                return await handle(request)
            except ContextbaseError as error:
                return _with_error(error_response(error))
            except RequestValidationError as error:
                return _with_error(invalid_request_response(error))
            except HTTPException as error:  # FastAPI's own, about a body that is not UTF-8
                return _with_error(http_exception_response(request, error))
            except Exception:  # noqa: BLE001 - as the middleware does, which knows nothing of `error`
                _log.exception("the request of a chat failed")
                return _with_error(unexpected_problem())

        return handle_with_error


def _with_error(response: Response) -> Response:
    problem = json.loads(bytes(response.body))
    body = json.dumps({"error": problem["detail"], **problem})
    answer = Response(body, status_code=response.status_code, media_type=PROBLEM_TYPE)
    answer.headers.update({name: value for name, value in response.headers.items() if name in _KEPT})
    return answer
