"""The OpenAPI document: what FastAPI reads from the routes, and what all of them share: errors and the token."""

from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from starlette.routing import compile_path

from contextbase.interfaces.api.authentication import COOKIE
from contextbase.wire.problem import PROBLEM_TYPE, Problem

__all__ = ["OPEN", "DocumentedApp", "problem_answers"]

Responses = dict[int | str, dict[str, Any]]

OPEN: Final[dict[str, Any]] = {"security": []}
"""For `openapi_extra` of a route that answers without a token."""


def problem_answers(*statuses: int) -> Responses:
    """For `responses` of a route: these answers are problem+json. A test fails on a status that is in no such list."""
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


class DocumentedApp(FastAPI):
    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        components = document["components"]
        components["schemas"]["Problem"] = Problem.model_json_schema()
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "As `contextbase token create` makes it."},
            "login": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "Set by /login, for browsers."},
        }
        document["security"] = [{"token": []}, {"login": []}]
        return document

    def methods_at(self, path: str) -> set[str]:
        """The methods that a documented address takes; a route by itself knows only its own."""
        documented = self.openapi()["paths"]
        templates = [path] if path in documented else [each for each in documented if _matches(each, path)]
        return {method.upper() for template in templates for method in documented[template]}


def _matches(template: str, path: str) -> bool:
    return compile_path(template)[0].match(path) is not None
