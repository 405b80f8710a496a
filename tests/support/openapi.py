"""The OpenAPI document of the application, made without a server."""

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from contextbase.config import Settings
from contextbase.interfaces.api.app import create_app
from contextbase.models.stream_apps import StreamApps

__all__ = ["openapi_document"]


def openapi_document() -> dict[str, Any]:
    core = SimpleNamespace(settings=Settings(), metrics=CollectorRegistry())
    services: Any = SimpleNamespace(core=core, models=SimpleNamespace(stream_apps=StreamApps()), machine=None)
    return create_app(services).openapi()
