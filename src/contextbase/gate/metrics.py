"""What group commit does, in numbers: for Prometheus, kept by each process for itself."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

__all__ = ["GateMetrics"]

_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class GateMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.batch_size = Histogram(
            "contextbase_gate_batch_requests",
            "Requests folded into one transaction.",
            buckets=_SIZES,
            registry=registry,
        )
        self.wait = Histogram(
            "contextbase_gate_wait_seconds", "From a request's arrival until its batch begins.", buckets=_SECONDS,
            registry=registry,
        )  # fmt: skip
        self.lock = Histogram(
            "contextbase_gate_lock_seconds", "How long a batch held a project's head.", buckets=_SECONDS,
            registry=registry,
        )  # fmt: skip
        self.lost_races = Counter(
            "contextbase_gate_lost_races", "Plans made again because another process moved the head.", registry=registry
        )
        self.replays = Counter(
            "contextbase_gate_replays", "Batches that failed and were replayed one by one.", registry=registry
        )
