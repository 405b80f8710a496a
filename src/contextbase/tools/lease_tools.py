"""Reserving files, so that other agents know who is on what."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from contextbase.identity.levels import check_pattern
from contextbase.identity.model import Action
from contextbase.ids import TreePath
from contextbase.leases import Lease
from contextbase.leases.service import LeaseService
from contextbase.tools.arguments import ArgumentKind, Parameter
from contextbase.tools.model import Tool, ToolCall, ToolPlace, ToolResult

__all__ = ["LeaseTools"]

_LONGEST_WAIT_SECONDS: Final = 45
"""Agent programs give up on a call after a minute."""
_MOST_OWN: Final = 1000


class LeaseTools:
    def __init__(self, *, leases: LeaseService) -> None:
        self._leases = leases

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="reserve_files",
                description="Tell other agents that you are working on these files or patterns (src/**).",
                parameters=(
                    Parameter(name="paths", kind=ArgumentKind.TEXTS, is_required=True),
                    Parameter(
                        name="wait",
                        kind=ArgumentKind.NUMBER,
                        description="Seconds, if somebody has them.",
                        least=0,
                        most=_LONGEST_WAIT_SECONDS,
                    ),
                ),
                needs=Action.WRITE,
                is_idempotent=True,
                run=self.reserve_files,
            ),
            Tool(
                name="release_files",
                description="End your reservations: these, or all.",
                parameters=(Parameter(name="paths", kind=ArgumentKind.TEXTS),),
                needs=Action.WRITE,
                is_idempotent=True,
                run=self.release_files,
            ),
        )

    async def reserve_files(self, call: ToolCall) -> ToolResult:
        """All or none: what was got before one is refused is given back."""
        place, wait = call.place, call.arguments.number("wait", 0)
        patterns = dict.fromkeys(_in_project(place, call.arguments.texts("paths")))
        before = {lease.token for lease in await self._own(place)}
        got: list[Lease] = []
        try:
            for pattern in patterns:
                lease = await self._leases.acquire(
                    place.acting, place.project_id, pattern, wait=wait, key=_key(place, pattern)
                )
                got.append(lease)
        except BaseException:
            for lease in got:
                if lease.token not in before:
                    await self._leases.release(place.acting, place.project_id, lease.token)
            raise
        until = min(lease.expires_at for lease in got)
        reserved = ", ".join(place.paths.named(lease.pattern) for lease in got)
        text = (
            f"Reserved {reserved} until {until:%H:%M:%S} UTC. Call reserve_files again before that if you need them "
            "longer, and release_files when you are done."
        )
        data = {
            "leases": [
                {
                    "pattern": place.paths.named(one.pattern),
                    "token": one.token,
                    "until": one.expires_at.isoformat(),
                }
                for one in got
            ]
        }
        return ToolResult(text=text, data=data)

    async def release_files(self, call: ToolCall) -> ToolResult:
        place, patterns = call.place, set(_in_project(call.place, call.arguments.texts("paths")))
        released = []
        for lease in await self._own(place):
            if not patterns or lease.pattern in patterns:
                await self._leases.release(place.acting, place.project_id, lease.token)
                released.append(place.paths.named(lease.pattern))
        text = f"Released {', '.join(released)}." if released else "You had none of these reserved."
        return ToolResult(text=text, data={"released": released})

    async def _own(self, place: ToolPlace) -> list[Lease]:
        principal = place.acting.principal
        owner = str(principal)
        return await self._leases.page(place.acting, place.project_id, owner=owner, limit=_MOST_OWN)


def _in_project(place: ToolPlace, patterns: Iterable[str]) -> list[str]:
    # Checked before the folder is put in front: what is wrong with a pattern is told as the agent wrote it.
    return [place.paths.in_project(TreePath.stored(check_pattern(pattern))) for pattern in patterns]


def _key(place: ToolPlace, pattern: str) -> str:
    """The same reservation asked for again is renewed, not made twice."""
    return sha256(f"{place.acting.principal.id}\0{pattern}".encode()).hexdigest()
