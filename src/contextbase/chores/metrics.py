"""How chores go, in numbers: for Prometheus, kept by each process for itself."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = ["ChoreMetrics"]


class ChoreMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.runs = Counter(
            "contextbase_chore_runs", "Runs of a chore, by what came of them.", ["chore", "result"], registry=registry
        )
        self.seconds = Histogram("contextbase_chore_seconds", "How long a run took.", ["chore"], registry=registry)
        self.succeeded_at = Gauge(
            "contextbase_chore_succeeded_at_seconds", "When a chore last succeeded.", ["chore"], registry=registry
        )
        self.leads = Gauge(
            "contextbase_chore_leader", "1 on the server that does the leader's chores.", registry=registry
        )
