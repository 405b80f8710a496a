"""Prometheus metrics of one server process, beside what its services count."""

from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from contextbase import __version__

__all__ = ["Metrics"]

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        Gauge("contextbase_info", "Version of this server.", ["version"], registry=self._registry).labels(
            __version__
        ).set(1)
        self._requests = Counter(
            "contextbase_http_requests",
            "HTTP requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "contextbase_http_request_seconds", "Time to answer.", ["method", "route"], registry=self._registry
        )
        # The client finds a series by its labels each time, under a lock.
        self._requests_of = cache(self._requests.labels)
        self._seconds_of = cache(self._seconds.labels)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request under its route's template, so that paths cannot blow up the number of series."""
        known = method if method in _METHODS else "other"
        self._requests_of(known, route, status).inc()
        self._seconds_of(known, route).observe(seconds)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)
