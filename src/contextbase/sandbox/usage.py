"""What a command used and what it ran into, as its control groups tell it."""

from dataclasses import dataclass
from signal import SIGXFSZ

from contextbase.limits import Limit
from contextbase.sandbox.cgroups import ControlGroup, Usage
from contextbase.sandbox.execution import Ended
from contextbase.sandbox.model import CommandOutcome

__all__ = ["GroupUsage"]

_NOTHING = Usage()


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupUsage:
    """`leaf` is the command's own group, `sandbox` the one with the limits (they may be the same), which others may
    have used before."""

    leaf: ControlGroup | None
    sandbox: ControlGroup | None
    before: Usage

    @classmethod
    def open(cls, leaf: ControlGroup | None, sandbox: ControlGroup | None) -> "GroupUsage":
        before = _NOTHING if sandbox is None or sandbox is leaf else sandbox.usage()
        return cls(leaf=leaf, sandbox=sandbox, before=before)

    def outcome(self, ended: Ended) -> CommandOutcome:
        own = _NOTHING if self.leaf is None else self.leaf.usage()
        all_of_it = own if self.sandbox is self.leaf or self.sandbox is None else self.sandbox.usage()
        return CommandOutcome(
            exit_code=ended.exit_code,
            signal=ended.signal,
            stopped_by=ended.stopped_by or _limit(ended, own),
            # The kernel counts a refused fork in the group that asked or in the one with the limit: versions differ.
            forks_refused=own.refused_forks > 0 or all_of_it.refused_forks > self.before.refused_forks,
            slowed_down=all_of_it.throttled > self.before.throttled,
            seconds=ended.seconds,
            cpu_seconds=ended.cpu_seconds if own.cpu_seconds is None else own.cpu_seconds,
            peak_memory=ended.peak_memory if own.peak_memory is None else own.peak_memory,
        )


def _limit(ended: Ended, own: Usage) -> Limit | None:
    """Which limit the kernel ended it by. A command that got over the end of one of its processes is none of them."""
    if ended.exit_code == 0:
        return None
    if own.killed_for_memory:
        return Limit.MEMORY
    if ended.signal == SIGXFSZ or ended.exit_code == 128 + SIGXFSZ:  # a file as large as all it may write; from a shell
        return Limit.DISK
    return None
