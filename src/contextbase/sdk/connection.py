"""One server as one principal: sends requests, turns answers into wire models and problems into errors."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from contextbase.errors import ContextbaseError, InvalidInput, Unavailable, error_of_code
from contextbase.sdk.lines import lines_of_async
from contextbase.wire.problem import Problem

__all__ = ["Body", "Connection", "check_server", "error_of", "parsed"]

Body = TypeVar("Body", bound=BaseModel)
Answer = TypeVar("Answer")

_FIRST_WAIT_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 5.0
_SILENCE_SECONDS: Final = 45.0  # of a stream: several of its signs of life


class Connection:
    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_seconds: float,
        attempts: int,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        check_server(url, token)
        self._url = url.rstrip("/")
        self._attempts = attempts
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
        **query: Any,
    ) -> Body:
        """The answer as a wire model; raises the error the server answered with. `read_seconds`: wait for it at least
        so long."""
        content = _json(body) if isinstance(body, BaseModel) else body
        response = await self.send(method, path, content=content, query=query, read_seconds=read_seconds)
        if response.is_success:
            return parsed(answer, response)
        raise _error_of(response)

    async def done(self, method: str, path: str, /, **query: Any) -> None:
        """For what answers nothing."""
        response = await self.send(method, path, query=query)
        if not response.is_success:
            raise _error_of(response)

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: str | AsyncIterator[bytes] | None = None,
        query: dict[str, Any] | None = None,
        read_seconds: float = 0,
    ) -> httpx.Response:
        """Any answer; raises `Unavailable` when there is none."""
        headers = {"Content-Type": "application/json"} if isinstance(content, str) else {}
        timeout = httpx.Timeout(self._timeout_seconds, read=max(self._timeout_seconds, read_seconds))
        with _unavailable_if_silent(self._url):
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
        with _unavailable_if_silent(self._url):
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
                    raise _error_of(response)
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
        """For requests that may be sent again: until it is answered, waiting longer each time."""
        wait = _FIRST_WAIT_SECONDS
        for _ in range(self._attempts - 1):
            try:
                return await attempt()
            except Unavailable:
                await asyncio.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - spreads the retries of many agents
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
        return await attempt()


def parsed(answer: type[Body], response: httpx.Response) -> Body:
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as error:
        raise Unavailable("The answer is not contextbase's; is the URL right, and the server as new?") from error


@contextmanager
def _unavailable_if_silent(url: str) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise Unavailable(
            f"The server at {url} does not answer ({type(error).__name__}). Is it running? `contextbase up`"
        ) from error


def _json(body: BaseModel) -> str:
    try:
        return body.model_dump_json()
    except PydanticSerializationError as error:
        raise InvalidInput("What is to be sent has text that is not Unicode.") from error


def _given(query: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) for name, value in query.items() if value is not None}


def check_server(url: str, token: str) -> None:
    """Raise `InvalidInput` for what is no address of a server, or no token."""
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidInput("The token has characters no token has; was it copied whole?")
    try:
        _check_address(url)
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL) as error:
        raise InvalidInput(f"{url[:200]!r} is not the URL of a server: {error}.") from error


def _check_address(url: str) -> None:
    """Raises `ValueError`; httpx itself would only find that nobody answers."""
    address = urlsplit(url)
    if address.scheme not in ("http", "https"):
        raise ValueError("it starts with http:// or https://")
    if not address.hostname or address.port == 0:
        raise ValueError("it names no host or port")


def _error_of(response: httpx.Response) -> ContextbaseError:
    try:
        return error_of(Problem.model_validate_json(response.content))
    except ValidationError:
        return Unavailable(f"The server answered with status {response.status_code} and no reason.")


def error_of(problem: Problem) -> ContextbaseError:
    return error_of_code(problem.code, problem.detail, **problem.details | {"trace_id": problem.trace_id})
