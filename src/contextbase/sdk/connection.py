"""One server as one principal: sends requests, turns answers into wire models and problems into errors."""

import asyncio
import logging
import math
import os
import random
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any, Final, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from contextbase.errors import (
    ContextbaseError,
    InvalidInput,
    Misconfigured,
    Unavailable,
    error_of_code,
)
from contextbase.sdk.lines import lines_of_async
from contextbase.servers.choice import given_or_found
from contextbase.servers.request import check_server as check_address_and_token
from contextbase.wire.problem import Problem

__all__ = [
    "DEFAULT_RETRY_SECONDS",
    "DEFAULT_TIMEOUT_SECONDS",
    "Body",
    "Connection",
    "check_server",
    "error_of",
    "error_of_response",
    "no_answer",
    "parsed",
    "server_from",
]

_log = logging.getLogger(__name__)

Body = TypeVar("Body", bound=BaseModel)
Answer = TypeVar("Answer")

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
DEFAULT_RETRY_SECONDS: Final = 30.0  # a server that is restarted is back within about 10 s
_FIRST_WAIT_SECONDS: Final = 0.1
_WAIT_TOLD_SECONDS: Final = 0.8  # the fourth in a row: shorter gaps are nobody's concern
_LONGEST_WAIT_SECONDS: Final = 5.0
_SILENCE_SECONDS: Final = 45.0  # of a stream: several of its signs of life


class Connection:
    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_seconds: float,
        retry_seconds: float,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        url, token = server_from(url, token)
        _check_seconds("timeout_seconds", timeout_seconds, least=0.001)
        _check_seconds("retry_seconds", retry_seconds, least=0)
        self._url = url.rstrip("/")
        self._retry_seconds = retry_seconds
        self._timeout_seconds = timeout_seconds
        self._http = httpx.AsyncClient(
            base_url=self._url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout_seconds,
            transport=transport,
            trust_env=False,  # a proxy set for the internet is not for this server
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        answer: type[Body],
        method: str,
        path: str,
        body: BaseModel | AsyncIterator[bytes] | None = None,
        /,
        *,
        read_seconds: float = 0,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> Body:
        """The answer as a wire model; raises the error the server answered with. `read_seconds`: the shortest time to
        wait for the answer."""
        content = _json(body) if isinstance(body, BaseModel) else body
        response = await self.send(
            method, path, content=content, query=query, read_seconds=read_seconds, headers=headers
        )
        if response.is_success:
            return parsed(answer, response)
        raise error_of_response(response)

    async def done(self, method: str, path: str, /, **query: Any) -> None:
        """For what answers nothing."""
        response = await self.send(method, path, query=query)
        if not response.is_success:
            raise error_of_response(response)

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: str | AsyncIterator[bytes] | None = None,
        query: dict[str, Any] | None = None,
        read_seconds: float = 0,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """Any answer; raises `Unavailable` when there is none."""
        headers = (headers or {}) | ({"Content-Type": "application/json"} if isinstance(content, str) else {})
        timeout = httpx.Timeout(self._timeout_seconds, read=max(self._timeout_seconds, read_seconds))
        self._check_open()
        with no_answer(self._url):
            return await self._http.request(
                method, path, content=content, params=_given(query or {}), headers=headers, timeout=timeout
            )

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        body: BaseModel | None = None,
        /,
        *,
        headers: dict[str, str] | None = None,
        read_seconds: float = 0,
        **query: Any,
    ) -> AsyncIterator[httpx.Response]:
        """An answer whose body is read piece by piece; a `body` of one's own is posted."""
        kind = {} if body is None else {"Content-Type": "application/json"}
        timeout = httpx.Timeout(self._timeout_seconds, read=max(self._timeout_seconds, read_seconds))
        self._check_open()
        with no_answer(self._url):
            async with self._http.stream(
                "GET" if body is None else "POST",
                path,
                params=_given(query),
                headers=kind | (headers or {}),
                timeout=timeout,
                content=None if body is None else _json(body),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of_response(response)
                yield response

    async def items(self, adapter: TypeAdapter[Answer], path: str, body: BaseModel) -> AsyncGenerator[Answer, None]:
        """The items of a stream of server-sent events, to its end."""
        async with self.stream(
            path, body, headers={"Accept": "text/event-stream"}, read_seconds=_SILENCE_SECONDS
        ) as response:
            async for line in lines_of_async(response):
                if line.startswith("data: "):
                    try:
                        yield adapter.validate_json(line.removeprefix("data: "))
                    except ValidationError as error:
                        raise Unavailable("The stream broke off in the middle of an item.") from error

    def socket_of(self, path: str, **query: Any) -> tuple[str, dict[str, str]]:
        """The address of a web socket and the headers to open it with."""
        address = self._http.base_url.join(path).copy_merge_params(_given(query))
        scheme = "wss" if address.scheme == "https" else "ws"
        return str(address.copy_with(scheme=scheme)), {"Authorization": self._http.headers["Authorization"]}

    async def retried(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        """For requests that may be sent again: until it is answered, or `retry_seconds` are over. A request that itself
        took that long is still sent a second time."""
        started, wait, is_first = time.monotonic(), _FIRST_WAIT_SECONDS, True
        while True:
            try:
                return await attempt()
            except Unavailable as error:
                left = self._retry_seconds - (time.monotonic() - started)
                if not self._retry_seconds or (left <= 0 and not is_first):
                    raise
                is_first = False
                if wait == _WAIT_TOLD_SECONDS:
                    _log.warning("%s Trying again for another %.0f s.", error.message, left)
                pause = min(wait, max(left, _FIRST_WAIT_SECONDS))
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads the retries of many agents
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise InvalidInput("This client is closed. Create a new one.")


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
    """What the system says, such as "Connection refused"; else the kind of error."""
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


def _json(body: BaseModel) -> str:
    try:
        return body.model_dump_json()
    except PydanticSerializationError as error:
        raise InvalidInput("The request has text that is not valid Unicode.") from error


def _given(query: dict[str, Any]) -> dict[str, Any]:
    """A list is sent as the same name several times."""
    given = {
        name: [str(one) for one in value] if isinstance(value, list) else str(value)
        for name, value in query.items()
        if value is not None
    }
    for name, value in given.items():
        for text in value if isinstance(value, list) else [value]:
            try:
                text.encode()
            except UnicodeEncodeError:
                raise InvalidInput(f"{name}: {text[:120]!a} is not valid Unicode.") from None
    return given


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


def _check_seconds(name: str, value: object, *, least: float) -> None:
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
