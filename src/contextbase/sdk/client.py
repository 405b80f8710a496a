"""`Client`: the server's routes as methods. Answers are the wire models; errors are the tree of errors.py."""

import re
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from contextbase.errors import ContextbaseError, InvalidInput, Unavailable, error_of_code
from contextbase.wire.problem import Problem
from contextbase.wire.project import NAME_OR_ID, ProjectCreate, ProjectDetail, ProjectPage, ProjectView
from contextbase.wire.system import Me, Readiness, ServerVersion
from contextbase.wire.token import TokenCreate, TokenCreated, TokenPage, TokenRevoked

__all__ = ["Client"]

Body = TypeVar("Body", bound=BaseModel)


class Client:
    """A connection to one server as one principal. Use it as a context manager, or `close` it."""

    def __init__(self, url: str, token: str, *, timeout_seconds: float = 30.0) -> None:
        if not re.fullmatch(r"[!-~]+", token):
            raise InvalidInput("The token has characters no token has; was it copied whole?")
        self._url = url.rstrip("/")
        try:
            _check_address(url)
            self._http = httpx.Client(
                base_url=self._url,
                headers={"Authorization": f"Bearer {token}"},
                timeout=timeout_seconds,
                trust_env=False,  # a proxy set for the internet is not for this server
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise InvalidInput(f"{url[:200]!r} is not the URL of a server: {error}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def version(self) -> ServerVersion:
        return self._call(ServerVersion, "GET", "/api/v1/version")

    def me(self) -> Me:
        return self._call(Me, "GET", "/api/v1/me")

    def readiness(self) -> Readiness:
        """Also answers, rather than raises, when a part is not ready."""
        response = self._send("GET", "/readyz")
        return _parsed(Readiness, response)

    def create_project(self, name: str, *, description: str = "") -> ProjectView:
        body = ProjectCreate(name=name, description=description)
        return self._call(ProjectView, "POST", "/api/v1/projects", body)

    def projects(self, *, after: str = "", limit: int = 100) -> ProjectPage:
        return self._call(ProjectPage, "GET", "/api/v1/projects", after=after, limit=limit)

    def project(self, name_or_id: str) -> ProjectDetail:
        return self._call(ProjectDetail, "GET", f"/api/v1/projects/{_segment(name_or_id)}")

    def delete_project(self, name_or_id: str) -> ProjectView:
        return self._call(ProjectView, "DELETE", f"/api/v1/projects/{_segment(name_or_id)}")

    def create_token(self, request: TokenCreate) -> TokenCreated:
        return self._call(TokenCreated, "POST", "/api/v1/tokens", request)

    def tokens(self, *, before: UUID | None = None, limit: int = 100) -> TokenPage:
        query: dict[str, Any] = {"limit": limit} | ({"before": str(before)} if before else {})
        return self._call(TokenPage, "GET", "/api/v1/tokens", **query)

    def revoke_token(self, token_id: UUID) -> TokenRevoked:
        return self._call(TokenRevoked, "DELETE", f"/api/v1/tokens/{token_id}")

    def _call(self, answer: type[Body], method: str, path: str, body: BaseModel | None = None, **query: Any) -> Body:
        response = self._send(method, path, body, query)
        if response.is_success:
            return _parsed(answer, response)
        raise _error_of(response)

    def _send(
        self, method: str, path: str, body: BaseModel | None = None, query: dict[str, Any] | None = None
    ) -> httpx.Response:
        try:
            content = None if body is None else body.model_dump_json()
        except PydanticSerializationError as error:
            raise InvalidInput("What is to be sent has text that is not Unicode.") from error
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            return self._http.request(method, path, content=content, params=query or None, headers=headers)
        except httpx.HTTPError as error:
            raise Unavailable(
                f"The server at {self._url} does not answer ({type(error).__name__}). Is it running? `contextbase up`"
            ) from error


def _check_address(url: str) -> None:
    """Raises `ValueError`; httpx itself would only find that nobody answers."""
    address = urlsplit(url)
    if address.scheme not in ("http", "https"):
        raise ValueError("it starts with http:// or https://")
    if not address.hostname or address.port == 0:
        raise ValueError("it names no host or port")


def _segment(name: str) -> str:
    if not re.fullmatch(NAME_OR_ID, name):
        raise InvalidInput(f"{name[:120]!r} is not a project's name or id.")
    return name


def _parsed(answer: type[Body], response: httpx.Response) -> Body:
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as error:
        raise Unavailable("The answer is not contextbase's; is the URL right, and the server as new?") from error


def _error_of(response: httpx.Response) -> ContextbaseError:
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        return Unavailable(f"The server answered with status {response.status_code} and no reason.")
    return error_of_code(problem.code, problem.detail, **problem.details | {"trace_id": problem.trace_id})
