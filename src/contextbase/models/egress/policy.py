"""Which hosts a project's sandboxes may reach. Nothing is allowed that an administrator did not name."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.errors import InvalidInput
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock, ProjectId
from contextbase.models.repository import ModelRepository

__all__ = ["PRESETS", "AllowedHosts", "EgressPolicy", "checked_host"]

PRESETS: Final = {
    "apt": ("deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"),
    "git": ("github.com", "*.githubusercontent.com", "gitlab.com", "bitbucket.org", "codeberg.org"),
    "npm": ("registry.npmjs.org", "registry.yarnpkg.com"),
    "pip": ("pypi.org", "files.pythonhosted.org"),
}
_PRESET: Final = "preset:"
_NAME: Final = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_HOST: Final = re.compile(
    rf"(?:\*\.)?{_NAME}(?:\.{_NAME})*(?::[0-9]{{1,5}})?|[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}(?::[0-9]{{1,5}})?"
)
_PORTS: Final = frozenset({80, 443})
_MOST_HOSTS: Final = 500


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Names, `*.name` for all below one, and `name:port` for other ports than 80 and 443."""

    entries: frozenset[str]

    @classmethod
    def of(cls, listed: Iterable[str]) -> "AllowedHosts":
        """With presets replaced by their hosts."""
        entries: set[str] = set()
        for host in listed:
            entries.update(PRESETS.get(host.removeprefix(_PRESET), ()) if host.startswith(_PRESET) else (host,))
        return cls(frozenset(entries))

    def allows(self, host: str, port: int) -> bool:
        host = host.lower().rstrip(".")
        names = [host, *(f"*.{parent}" for parent in _parents(host))]
        return any(f"{name}:{port}" in self.entries or (port in _PORTS and name in self.entries) for name in names)


class EgressPolicy:
    def __init__(
        self, *, database: Database, repository: ModelRepository, audit: AuditRepository, clock: Clock
    ) -> None:
        self._database = database
        self._repository = repository
        self._audit = audit
        self._clock = clock

    async def allowed(self, project_id: ProjectId) -> AllowedHosts:
        """For the proxy."""
        async with self._database.connection() as connection:
            return AllowedHosts.of(await self._repository.egress_hosts(connection, project_id))

    async def hosts(self, caller: Caller, project_id: ProjectId) -> list[str]:
        """As they were listed."""
        caller.require(Action.READ, project_id)
        async with self._database.connection() as connection:
            return await self._repository.egress_hosts(connection, project_id)

    async def replace(self, caller: Caller, project_id: ProjectId, hosts: Sequence[str]) -> list[str]:
        """Allow these hosts and no other."""
        caller.require(Action.ADMIN, project_id)
        checked = sorted({checked_host(host) for host in hosts})
        if len(checked) > _MOST_HOSTS:
            raise InvalidInput(f"A project allows at most {_MOST_HOSTS} hosts.")
        async with self._database.transaction() as connection:
            await self._repository.replace_egress_hosts(connection, project_id, checked)
            summary = f"Sandboxes may reach {len(checked)} hosts."
            now = self._clock.now()
            await self._audit.note(
                connection, project_id, "project.egress", summary, at=now, by=caller.actor, hosts=checked
            )
        return checked


def checked_host(host: str) -> str:
    """As it is stored; raises `InvalidInput` if it is neither a host nor a preset."""
    text = host.strip().lower()
    if text.startswith(_PRESET):
        if text.removeprefix(_PRESET) not in PRESETS:
            raise InvalidInput(f"There is no preset '{text[:100]}'; there are: {', '.join(sorted(PRESETS))}.")
    elif len(text) > 255 or not _HOST.fullmatch(text):
        raise InvalidInput(f"{host[:100]!r} is not a host; write such as pypi.org, *.example.com or example.com:8443.")
    return text


def _parents(host: str) -> list[str]:
    parts = host.split(".")
    return [".".join(parts[start:]) for start in range(1, len(parts))]
