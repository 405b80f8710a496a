"""What the layers of an app's configuration say about a run of one of its sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from contextbase.catalog.app_session_repository import AppSessionRepository
from contextbase.catalog.configuration import AgentConfiguration, LocalMcpServer, OpenedConfig, parsed_config
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.service import AppService
from contextbase.db.database import Database
from contextbase.errors import Conflict
from contextbase.models.remote_mcp import RemoteMcpServer, path_of_server
from contextbase.sessions.model import AgentSession

__all__ = ["AppRunSettings", "RunSettings"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    system_prompt: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    commands: Mapping[str, str] = field(default_factory=dict)
    local_servers: Mapping[str, LocalMcpServer] = field(default_factory=dict)
    remote_servers: Mapping[str, RemoteMcpServer] = field(default_factory=dict)
    seconds: float | None = None
    output_bytes: int | None = None
    run_budget: int | None = None  # micro-units
    answer_within: timedelta | None = None  # for a person, until a question expires

    @classmethod
    def of(cls, opened: OpenedConfig) -> "RunSettings":
        config = opened.config
        minutes = None if config.timeouts is None else config.timeouts.question_minutes
        return cls(
            system_prompt=config.system_prompt,
            environment=opened.environment,
            commands={name: text for name, text in (config.commands or {}).items() if text is not None},
            local_servers=opened.local,
            remote_servers=opened.remote,
            seconds=None if config.limits is None else config.limits.seconds,
            output_bytes=None if config.limits is None else config.limits.output_bytes,
            run_budget=None if config.budgets is None else config.budgets.run,
            answer_within=None if minutes is None else timedelta(minutes=minutes),
        )

    def limits(self, seconds: float, output_bytes: int) -> dict[str, float]:
        """No more than these."""
        return {
            "seconds": min(self.seconds or seconds, seconds),
            "output_bytes": min(self.output_bytes or output_bytes, output_bytes),
        }

    def mcp_servers(self) -> dict[str, dict[str, object]]:
        """As the executor is told."""
        local: dict[str, dict[str, object]] = {
            name: {"command": list(server.command), "environment": dict(server.environment)}
            for name, server in self.local_servers.items()
        }
        return {**local, **{name: {"path": path_of_server(name)} for name in self.remote_servers}}


@dataclass(frozen=True, kw_only=True, slots=True)
class AppRunSettings:
    database: Database
    apps: AppService
    configuration: AgentConfiguration
    catalog: AppRepository = field(default_factory=AppRepository)
    repository: AppSessionRepository = field(default_factory=AppSessionRepository)

    async def of_run(self, session: AgentSession) -> RunSettings:
        """As the layers are now. `Conflict` if they name a secret that is not stored."""
        return RunSettings() if session.app is None else RunSettings.of(await self._opened(session))

    async def skills(self, session: AgentSession) -> tuple[str, ...]:
        """Names of the skills that its agent is given."""
        return () if session.app is None else tuple((await self._opened(session)).config.skills or ())

    async def answers_itself(self, session: AgentSession) -> bool:
        """Whether a question that nobody answers in time gets the default answer; else its run fails."""
        if session.app is None:
            return False
        timeouts = (await self._opened(session)).config.timeouts
        return timeouts is not None and timeouts.on_question_timeout == "default"

    async def _opened(self, session: AgentSession) -> OpenedConfig:
        async with self.database.connection() as connection:
            row = await self.repository.find(connection, session.id)
            app = None if row is None else await self.catalog.find(connection, row.app, session.owner.id)
            if row is None or app is None:
                raise Conflict("The session's app is gone; start a new session.")
            if not app.enabled:
                raise Conflict(f"The app '{app.name}' is disabled.")
            place = await self.apps.place(connection, app, row.project, row.login)
            overrides = parsed_config(row.overrides)
            found = await self.configuration.of_user(connection, app, place, session.owner.id, overrides)
            return await self.configuration.opened(connection, app, place, session.owner.id, found.effective)
