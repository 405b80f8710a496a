"""Every error becomes problem+json, with the error's code and the request's trace id."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, WebSocket
from fastapi.exceptions import RequestValidationError, ValidationException, WebSocketRequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from contextbase import errors
from contextbase.logs import trace_id
from contextbase.wire.problem import PROBLEM_TYPE, Problem

__all__ = [
    "error_response",
    "http_exception_response",
    "install_problem_handlers",
    "invalid_request_response",
    "problem_of",
    "problem_response",
    "unexpected_problem",
]

_log = logging.getLogger(__name__)

# The nearest class in an error's ancestry decides.
_STATUS: Final[dict[type[errors.ContextbaseError], HTTPStatus]] = {
    errors.InvalidInput: HTTPStatus.BAD_REQUEST,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.TooManyAttempts: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.ContentPurged: HTTPStatus.GONE,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.HeldElsewhere: HTTPStatus.MISDIRECTED_REQUEST,
    errors.PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.TooBusy: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Misconfigured: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Damaged: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ContextbaseError: HTTPStatus.INTERNAL_SERVER_ERROR,
}

_HEADERS: Final = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": "1"},
}

_CODE_OF_STATUS: Final = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 400: "invalid_input"}


def problem_response(
    status: int, code: str, detail: str, details: dict[str, object] | None = None, headers: dict[str, str] | None = None
) -> Response:
    return _response(_problem(status, code, detail, details or {}), headers)


def _problem(status: int, code: str, detail: str, details: dict[str, object]) -> Problem:
    return Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        trace_id=trace_id.get(),
        details=details,
    )


def _response(problem: Problem, headers: dict[str, str] | None) -> Response:
    return Response(problem.model_dump_json(), status_code=problem.status, media_type=PROBLEM_TYPE, headers=headers)


def install_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(errors.ContextbaseError, _on_our_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(WebSocketRequestValidationError, _on_invalid_socket)


def unexpected_problem() -> Response:
    """For what nobody foresaw: nothing of it is shown, the log has it all under the trace id."""
    return problem_response(500, "internal_error", "Something went wrong on the server; the log has the trace id.")


async def _on_our_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, errors.ContextbaseError):
        raise error
    return error_response(error)


def error_response(error: errors.ContextbaseError) -> Response:
    problem = problem_of(error)
    return _response(problem, _HEADERS.get(HTTPStatus(problem.status)))


def problem_of(error: errors.ContextbaseError) -> Problem:
    status = next(_STATUS[ancestor] for ancestor in type(error).__mro__ if ancestor in _STATUS)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error(error.message, extra={"code": error.code}, exc_info=error)
    if isinstance(error, errors.Misconfigured | errors.Damaged):
        # How the server is set up, or what of it is broken, is the operator's business: it is in the log.
        detail = "The server has a problem that its operator must look at; its log has the trace id."
        return _problem(status, error.code, f"{detail} {error.aftermath}".rstrip(), error.aftermath_details)
    return _problem(status, error.code, error.message, dict(error.details))


async def _on_invalid_request(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return invalid_request_response(error)


async def _on_invalid_socket(socket: WebSocket, error: Exception) -> None:
    if not isinstance(error, WebSocketRequestValidationError):
        raise error
    await socket.send_denial_response(invalid_request_response(error))


def invalid_request_response(error: ValidationException) -> Response:
    problems = [{"where": _where(problem["loc"]), "problem": problem["msg"]} for problem in error.errors()[:20]]
    first = problems[0] if problems else {"where": "body", "problem": "not valid"}
    detail = f"The request is not valid at {first['where']}: {first['problem']}."
    return problem_response(422, "invalid_input", detail, {"problems": problems})


def _where(location: Sequence[object]) -> str:
    """The caller chose the names in it: they must not be endless, nor break the answer's encoding."""
    return ".".join(str(part)[:80] for part in location).encode(errors="backslashreplace").decode()


async def _on_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return http_exception_response(request, error)


def http_exception_response(request: Request, error: HTTPException) -> Response:
    if isinstance(error.__cause__, errors.ContextbaseError):  # ours, raised while FastAPI read the body
        return error_response(error.__cause__)
    code = _CODE_OF_STATUS.get(error.status_code, "invalid_input")
    detail, headers = str(error.detail), dict(error.headers or {})
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = f"There is nothing at {request.url.path[:200]}; /docs lists what there is."
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.url.path[:200]} does not take {request.method[:20]}; /docs lists what there is."
        headers["Allow"] = ", ".join(sorted(request.app.methods_at(request.url.path))) or headers["Allow"]
    return problem_response(error.status_code, code, detail, headers=headers)
