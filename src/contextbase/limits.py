"""How much a command may use, whatever runs it."""

from dataclasses import dataclass, fields

from contextbase.errors import InvalidInput
from contextbase.vocabulary import Limit

__all__ = ["Limit", "ResourceLimits"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceLimits:
    """Each is about the command with everything it starts. None: no limit."""

    max_memory: int | None = 512 << 20  # bytes
    max_cpu: float | None = 50  # percent of one processor's time; 200 is two processors
    max_processes: int | None = 10
    max_execution_time: float | None = 300  # seconds by the clock on the wall
    max_output: int | None = 10 << 20  # bytes written to standard output and standard error
    max_disk: int | None = None  # bytes it may add to its folder

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise InvalidInput(f"{field.name} must be more than 0, not {value}; leave it out for no limit.")
