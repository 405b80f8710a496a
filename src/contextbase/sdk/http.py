"""What both clients share of HTTP: which server is meant, how a request is written, and what an answer means."""

import math
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from contextbase.errors import ContextbaseError, InvalidInput, Misconfigured, Unavailable, error_of_code
from contextbase.servers.choice import given_or_found
from contextbase.servers.request import check_server as check_address_and_token
from contextbase.wire.problem import Problem

__all__ = [
    "Body",
    "check_seconds",
    "check_server",
    "error_of",
    "error_of_response",
    "given",
    "json_of",
    "no_answer",
    "parsed",
    "server_from",
]

Body = TypeVar("Body", bound=BaseModel)


def parsed(answer: type[Body], response: httpx.Response) -> Body:
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as error:
        raise _not_ours(response) from error


@contextmanager
def no_answer(url: str) -> Iterator[None]:
    """Raise `Unavailable` when the server does not answer, `Misconfigured` when TLS fails."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise Unavailable(
            f"The server at {url} did not answer in time ({type(error).__name__}). Try again, or allow more time with "
            "timeout_seconds."
        ) from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        problem = _tls_problem(error)
        if problem is not None:
            raise Misconfigured(
                f"No secure connection to {url}: {problem}. Check that the URL is right (http or https), and that this "
                "machine trusts the server's certificate."
            ) from error
        raise Unavailable(
            f"The server at {url} does not answer ({_reason(error)}). Check that it is running "
            "(`contextbase up`) and that the URL is right."
        ) from error


def _reason(error: BaseException) -> str:
    """What the system says, such as "AsyncConnection refused"; else the kind of error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno and cause.errno > 0:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _tls_problem(error: BaseException) -> str | None:
    """What TLS complains about, wherever in the chain of causes it is."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate is not valid ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return f"the TLS handshake failed ({cause.reason or type(cause).__name__})"
        cause = cause.__cause__ or cause.__context__
    return None


def json_of(body: BaseModel) -> str:
    try:
        return body.model_dump_json()
    except PydanticSerializationError as error:
        raise InvalidInput("The request has text that is not valid Unicode.") from error


def given(query: dict[str, Any]) -> dict[str, Any]:
    """A list is sent as the same name several times."""
    found = {
        name: [str(one) for one in value] if isinstance(value, list) else str(value)
        for name, value in query.items()
        if value is not None
    }
    for name, value in found.items():
        for text in value if isinstance(value, list) else [value]:
            try:
                text.encode()
            except UnicodeEncodeError:
                raise InvalidInput(f"{name}: {text[:120]!a} is not valid Unicode.") from None
    return found


def server_from(url: str | None, token: str | None) -> tuple[str, str]:
    """The given URL and token; what is not given comes from CONTEXTBASE_URL and CONTEXTBASE_TOKEN, or from the server
    that the command line would talk to. Raises `InvalidInput` for a URL or token that cannot be right, and
    `Unauthenticated` without a token."""
    url, token = given_or_found(url, token)
    check_server(url, token)
    return url, token


def check_server(url: str, token: str) -> None:
    """Raise `InvalidInput` for what is not the URL of a server, or not a token."""
    for name, value in (("URL", url), ("token", token)):
        _check_text(name, value)
    check_address_and_token(url, token)
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput(f"{url[:200]!r} is not the URL of a server: {error}.") from error


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"The {name} must be a text, not {type(value).__name__}.")


def check_seconds(name: str, value: object, *, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < least:
        raise InvalidInput(f"{name}: {value!r} is not a number of seconds of at least {least:g}.")


def error_of_response(response: httpx.Response) -> ContextbaseError:
    """The error that an answer stands for. One without a reason comes from a proxy, or is not contextbase's."""
    try:
        return error_of(Problem.model_validate_json(response.content))
    except ValidationError:
        status = response.status_code
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            return Unavailable(f"The server, or a proxy before it, answered with status {status} and no reason.")
        return _not_ours(response)


def _not_ours(response: httpx.Response) -> ContextbaseError:
    kind = response.headers.get("Content-Type", "no content type").partition(";")[0]
    return Misconfigured(
        f"The answer (status {response.status_code}, {kind[:80]}) is not one of contextbase's. Check that the URL "
        "leads to a contextbase server and not to another site or a login page, and that both have the same version."
    )


def error_of(problem: Problem) -> ContextbaseError:
    return error_of_code(problem.code, problem.detail, **problem.details | {"trace_id": problem.trace_id})
