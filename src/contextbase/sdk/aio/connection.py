"""One server as one principal: sends requests, turns answers into wire models and problems into errors."""

import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from contextbase.errors import InvalidInput, Unavailable
from contextbase.sdk.aio.lines import lines_of
from contextbase.sdk.aio.waiting import sleep
from contextbase.sdk.http import Body, check_seconds, error_of_response, given, json_of, no_answer, parsed, server_from

__all__ = ["DEFAULT_RETRY_SECONDS", "DEFAULT_TIMEOUT_SECONDS", "SILENCE_SECONDS", "AsyncConnection"]

_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
DEFAULT_RETRY_SECONDS: Final = 30.0  # a server that is restarted is back within about 10 s
_FIRST_WAIT_SECONDS: Final = 0.1
_WAIT_TOLD_SECONDS: Final = 0.8  # the fourth in a row: shorter gaps are nobody's concern
_LONGEST_WAIT_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 45.0  # of a stream: several of its signs of life


class AsyncConnection:
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
        check_seconds("timeout_seconds", timeout_seconds, least=0.001)
        check_seconds("retry_seconds", retry_seconds, least=0)
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
        content = json_of(body) if isinstance(body, BaseModel) else body
        response = await self.send(
            method, path, content=content, query=query, read_seconds=read_seconds, headers=headers
        )
        if response.is_success:
            return parsed(answer, response)
        raise error_of_response(response)

    async def read(self, answer: type[Body], path: str, /, *, read_seconds: float = 0, **query: Any) -> Body:
        """What a GET answers. It is sent again while the server does not answer or is busy."""
        return await self.retried(lambda: self.call(answer, "GET", path, read_seconds=read_seconds, **query))

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
                method, path, content=content, params=given(query or {}), headers=headers, timeout=timeout
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
                params=given(query),
                headers=kind | (headers or {}),
                timeout=timeout,
                content=None if body is None else json_of(body),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of_response(response)
                yield response

    async def items(self, adapter: TypeAdapter[Answer], path: str, body: BaseModel) -> AsyncGenerator[Answer, None]:
        """The items of a stream of server-sent events, to its end."""
        async with self.stream(
            path, body, headers={"Accept": "text/event-stream"}, read_seconds=SILENCE_SECONDS
        ) as response:
            async for line in lines_of(response):
                if line.startswith("data: "):
                    try:
                        yield adapter.validate_json(line.removeprefix("data: "))
                    except ValidationError as error:
                        raise Unavailable("The stream broke off in the middle of an item.") from error

    def socket_of(self, path: str, **query: Any) -> tuple[str, dict[str, str]]:
        """The address of a web socket and the headers to open it with."""
        address = self._http.base_url.join(path).copy_merge_params(given(query))
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
                await sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads the retries of many agents
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise InvalidInput("This client is closed. Create a new one.")
