"""Which agents sessions can have here: by which names, and whether their programs are installed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from contextbase.agent_vocabulary import ExecutionProfile
from contextbase.agents.model import Capability
from contextbase.agents.options import COMMON_OPTIONS, AgentOption, OptionProblem, checked_options
from contextbase.agents.ports import AgentAdapter
from contextbase.agents.registry import adapters
from contextbase.errors import InvalidInput
from contextbase.sessions.agent_programs import AgentPrograms
from contextbase.sessions.model import RunWishes
from contextbase.threads import in_thread

__all__ = ["AgentCatalog", "KnownAgent"]

_PREFERRED: Final = "opencode"
_PROFILES: Final = frozenset(ExecutionProfile)
_BUILD: Final = "build"  # what every program does by default
_FOLDER: Final = "FOLDER is one of CONTEXTBASE_AGENT_FOLDERS, a setting of the server and its machines."


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownAgent:
    name: str
    also_called: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    is_installed: bool
    version: str | None
    how_to_install: str | None
    options: tuple[AgentOption, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCatalog:
    programs: AgentPrograms
    adapters: tuple[AgentAdapter, ...] = field(default_factory=adapters)

    async def agents(self) -> list[KnownAgent]:
        installed = await in_thread(self.programs.versions)
        return [_known(adapter, installed) for adapter in self.adapters]

    async def default(self) -> str:
        """The provider of sessions that name none: Opencode, else the first that is installed."""
        installed = [agent.name for agent in await self.agents() if agent.is_installed]
        return _PREFERRED if _PREFERRED in installed else installed[0]

    async def provider(self, asked: str | None) -> str:
        """The provider that somebody means; it need not be installed on this server. Raises `InvalidInput`."""
        return await self.default() if asked is None else self._adapter(asked).name

    def options(self, provider: str, given: Mapping[str, object]) -> Mapping[str, object]:
        """Checked. Raises `InvalidInput` for what the program does not have."""
        adapter = self._adapter(provider)
        try:
            return checked_options(adapter.name, adapter.options, given)
        except OptionProblem as problem:
            known = sorted(option.name for option in (*COMMON_OPTIONS, *adapter.options))
            raise InvalidInput(str(problem), options=known) from None

    def wished(self, provider: str, wishes: RunWishes) -> RunWishes:
        """What somebody wishes for a message of a session with that provider, by the names and options that the program
        has. A profile may also be a choice of one of its options. Raises `InvalidInput`."""
        adapter = self._adapter(wishes.provider or provider)
        profile, options = wishes.profile, dict(wishes.options)
        if profile is not None and profile not in _PROFILES:
            chosen = [option.name for option in adapter.options if profile in option.choices]
            if not chosen and profile != _BUILD:
                known = sorted({*_PROFILES, *(one for option in adapter.options for one in option.choices)})
                raise InvalidInput(
                    f"{adapter.name} has no profile {profile[:80]!r}; it has {', '.join(known)}.", profiles=known
                )
            options = dict.fromkeys(chosen[:1], profile) | options
            profile = ExecutionProfile.DEFAULT
        return replace(wishes, provider=adapter.name, profile=profile, options=self.options(adapter.name, options))

    def _adapter(self, asked: str) -> AgentAdapter:
        for adapter in self.adapters:
            if asked in (adapter.name, *adapter.other_names):
                return adapter
        known = [adapter.name for adapter in self.adapters]
        raise InvalidInput(
            f"{asked[:80]!r} is not an agent of this server; it has {', '.join(known)}.", providers=known
        )


def _known(adapter: AgentAdapter, installed: Mapping[str, str | None]) -> KnownAgent:
    package = adapter.package
    is_installed = package is None or package.folder in installed
    return KnownAgent(
        name=adapter.name,
        also_called=tuple(sorted(adapter.other_names)),
        capabilities=tuple(sorted(adapter.capabilities)),
        is_installed=is_installed,
        version=None if package is None else installed.get(package.folder),
        how_to_install=None if package is None or is_installed else f"{package.how_to_install}; {_FOLDER}",
        options=(*COMMON_OPTIONS, *adapter.options),
    )
