"""One spelling in the API: the rules of docs/adr/0016, over the whole OpenAPI document."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.openapi import openapi_document

# One thing by nature, so not plural.
SINGULAR = {"history", "feed", "audit", "system", "me", "version", "search", "chat", "human-loop", "usage"}
OUTSIDE = {"/healthz", "/readyz", "/metrics"}
# Ids of other systems: a trace's id is defined by W3C.
NOT_OURS = {"trace_id", "message_id", "tool_id", "question_id", "todo_id"}
CHOSEN_BY_CLIENTS = {("POST /api/v1/chat", "id")}  # of the chat, and of its messages

CLOSED = {"kind", "status", "state", "review_state", "operator_type", "level", "default_level", "network", "stream"}
OPEN = {  # events of any kind may come
    route: {"kind"} for route in ("GET /api/v1/feed", "GET /api/v1/events", "GET /api/v1/runs/{run}/events")
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def fields(document: dict[str, Any], schema: dict[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[Any]:
    """Every property below a schema, with its name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in seen:
            yield from fields(document, document["components"]["schemas"][name], seen | {name})
        return
    for name, property_ in schema.get("properties", {}).items():
        yield name, property_
        yield from fields(document, property_, seen)
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from fields(document, part, seen)
    for part in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            yield from fields(document, part, seen)


def asked(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Whatever a client may send: the route, the name and the schema."""
    for route, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] != "header":
                yield route, parameter["name"], parameter["schema"]
        for content in operation.get("requestBody", {}).get("content", {}).values():
            for name, schema in fields(document, content["schema"]):
                yield route, name, schema


def answered(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for route, operation in operations(document):
        for status, answer in operation["responses"].items():
            for content in answer.get("content", {}).values():
                if int(status) < 400:
                    for name, schema in fields(document, content["schema"]):
                        yield route, name, schema


def kinds(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]


def test_a_path_is_a_plural_noun(document: dict[str, Any]) -> None:
    nouns = {path: path.split("/")[3] for path in document["paths"].keys() - OUTSIDE if path.startswith("/api/v1/")}
    assert document["paths"].keys() - OUTSIDE == nouns.keys()
    assert not {path for path, noun in nouns.items() if not noun.endswith("s") and noun not in SINGULAR}
    assert not {
        path for path in document["paths"] if re.sub(r"\{\w+\}", "", path) != re.sub(r"\{\w+\}", "", path).lower()
    }
    assert not {path for path in document["paths"] if "_" in re.sub(r"\{\w+\}", "", path)}


def test_a_request_says_project_and_takes_a_name_or_an_id(document: dict[str, Any]) -> None:
    patterns = {
        kind.get("pattern") for _, name, schema in asked(document) if name == "project" for kind in kinds(schema)
    }
    assert len(patterns) == 1, "every route takes the same names"
    assert not [(route, name) for route, name, _ in asked(document) if name in ("project_id", "agent_id")]


def test_an_answer_gives_the_projects_id_and_says_so(document: dict[str, Any]) -> None:
    assert not [route for route, name, _ in answered(document) if name == "project"]
    assert [route for route, name, _ in answered(document) if name == "project_id"]


def test_whatever_ends_in_id_is_a_uuid(document: dict[str, Any]) -> None:
    for route, name, schema in (*asked(document), *answered(document)):
        if (name == "id" or name.endswith("_id")) and name not in NOT_OURS and (route, name) not in CHOSEN_BY_CLIENTS:
            assert all(kind.get("format") == "uuid" for kind in kinds(schema)), (route, name, schema)


def test_the_aliases_are_not_documented(document: dict[str, Any]) -> None:
    assert not [path for path in document["paths"] if re.match(r"/api/v1/(collab|workspace|upload)(/|$)", path)]


def test_kinds_and_states_are_enumerated(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    def words(schema: dict[str, Any]) -> bool:
        found = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return "enum" in found or "const" in found

    checked = 0
    for route, name, schema in (*asked(document), *answered(document)):
        if name in CLOSED and name not in OPEN.get(route, ()):
            checked += 1
            assert all(words(kind) for kind in kinds(schema)), (route, name, schema)
    assert checked > 50
