"""Which agents sessions can have here: by which names, and whether their programs are installed."""

from dataclasses import dataclass, field
from typing import Final

from contextbase.agents.model import Capability
from contextbase.agents.ports import AgentAdapter
from contextbase.agents.registry import adapters
from contextbase.errors import InvalidInput
from contextbase.sessions.agent_programs import AgentPrograms
from contextbase.threads import in_thread

__all__ = ["AgentCatalog", "KnownAgent"]

_PREFERRED: Final = ("claude", "codex", "opencode")
_BUILT_IN: Final = "scripted"  # needs no program
_SPELLINGS: Final = {"claude-code": "claude", "codex-cli": "codex"}
_HOW_TO_INSTALL: Final = {
    "claude": "pip install 'contextbase[claude]' in the server's Python, or put it into FOLDER/claude",
    "codex": "npm install --prefix FOLDER/codex @openai/codex",
    "opencode": "npm install --prefix FOLDER/opencode opencode-ai",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownAgent:
    name: str
    also_called: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    is_installed: bool
    version: str | None

    @property
    def how_to_install(self) -> str | None:
        if self.is_installed:
            return None
        how = _HOW_TO_INSTALL.get(self.name, f"put it into FOLDER/{self.name}")
        return f"{how}; FOLDER is one of CONTEXTBASE_AGENT_FOLDERS, a setting of the server and its machines."


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCatalog:
    programs: AgentPrograms
    adapters: tuple[AgentAdapter, ...] = field(default_factory=adapters)

    async def agents(self) -> list[KnownAgent]:
        installed = await in_thread(self.programs.versions)
        return [
            KnownAgent(
                name=adapter.name,
                also_called=tuple(sorted(spelling for spelling, name in _SPELLINGS.items() if name == adapter.name)),
                capabilities=tuple(sorted(adapter.capabilities)),
                is_installed=adapter.name in installed or adapter.name == _BUILT_IN,
                version=installed.get(adapter.name),
            )
            for adapter in self.adapters
        ]

    async def default(self) -> str:
        """The provider of sessions that name none: the first of the known programs that is installed."""
        installed = {agent.name for agent in await self.agents() if agent.is_installed}
        return next((name for name in _PREFERRED if name in installed), _BUILT_IN)

    async def provider(self, asked: str | None) -> str:
        """The provider that somebody means; it need not be installed on this server. Raises `InvalidInput`."""
        if asked is None:
            return await self.default()
        name, known = _SPELLINGS.get(asked, asked), [adapter.name for adapter in self.adapters]
        if name not in known:
            raise InvalidInput(
                f"{asked[:80]!r} is not an agent of this server; it has {', '.join(known)}.", providers=known
            )
        return name
