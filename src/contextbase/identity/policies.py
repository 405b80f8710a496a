"""Who may do what where in a project, and how changes are merged there: read, changed, explained.

Every change happens in one transaction that renews the project's policy version, so that commits under way are
planned again, and that writes an audit row.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from contextbase.audit.model import SYSTEM_CHAIN
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, InvalidInput, NotFound
from contextbase.identity.levels import Level, LevelDecision, PathAuthority, PathRule, SubjectKind, check_pattern
from contextbase.identity.model import Action, Caller, PersonAccount, Principal, PrincipalName
from contextbase.identity.policy_repository import PolicyRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.roles import GIVEN, PLATFORM, RoleBinding, RoleScope
from contextbase.ids import Clock, ProjectId, TreePath, new_uuid
from contextbase.role_vocabulary import Right

__all__ = ["MERGE_STRATEGIES", "EffectivePolicy", "PolicyService", "Subject"]

MERGE_STRATEGIES: Final = (
    "auto",
    "review",
    "critical",
    "last-writer",
    "priority",
    "union",
    "crdt",
    "ours",
    "theirs",
)
MOST_RULES: Final = 1000
_HIGHEST_RANK: Final = 1_000_000
_GROUP: Final = "group"
_EVERYONE: Final = "everyone"


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Whom a rule is for, as people write it: `agent:indexer`, `group:writers` or `everyone`."""

    kind: SubjectKind
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> "Subject":
        if text == _EVERYONE:
            return cls(kind=SubjectKind.EVERYONE)
        kind, _, name = text.partition(":")
        if kind == _GROUP:
            return cls(kind=SubjectKind.GROUP, name=_group_name(name))
        return cls(kind=SubjectKind.PRINCIPAL, name=str(PrincipalName.parse(text)))

    @classmethod
    def of_rule(cls, rule: PathRule) -> "Subject":
        return cls(kind=rule.subject_kind, name=rule.subject_name)

    def __str__(self) -> str:
        if self.kind is SubjectKind.EVERYONE:
            return _EVERYONE
        return f"{_GROUP}:{self.name}" if self.kind is SubjectKind.GROUP else self.name


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectivePolicy:
    version: int
    default_level: Level
    rules: tuple[PathRule, ...]
    merge_rules: tuple[tuple[str, str], ...]  # pattern and strategy; the last that matches decides
    ranks: tuple[tuple[PrincipalName, int], ...]
    lease_rules: tuple[tuple[str, bool], ...]  # pattern, and whether leases bind; the last that matches decides


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyService:
    database: Database
    repository: PolicyRepository
    accounts: IdentityRepository
    audit: AuditRepository
    clock: Clock

    async def show(self, caller: Caller, project_id: ProjectId) -> EffectivePolicy:
        caller.require(Action.ADMIN, project_id)
        async with self.database.transaction(isolation="repeatable_read", readonly=True) as connection:
            version, default = await self.repository.read(connection, project_id)
            return EffectivePolicy(
                version=version,
                default_level=default,
                rules=tuple(await self.repository.rules(connection, project_id)),
                merge_rules=tuple(await self.repository.merge_rules(connection, project_id)),
                ranks=tuple(await self.repository.ranks(connection, project_id)),
                lease_rules=tuple(await self.repository.lease_rules(connection, project_id)),
            )

    async def put_rule(
        self,
        caller: Caller,
        project_id: ProjectId,
        *,
        subject: Subject,
        pattern: str,
        level: Level,
    ) -> PathRule:
        """Give a subject a level on a pattern; the rule it had there is replaced."""
        pattern = check_pattern(pattern)
        async with self._change(caller, project_id) as connection:
            subject_id, name = await self._resolved(connection, subject)
            rule = PathRule(
                id=new_uuid(),
                subject_kind=subject.kind,
                subject_id=subject_id,
                subject_name=name,
                pattern=pattern,
                level=level,
            )
            rules = await self.repository.rules(connection, project_id)
            replaced = next((each for each in rules if _same_place(each, rule)), None)
            if replaced is None and len(rules) >= MOST_RULES:
                raise Conflict(f"A project has at most {MOST_RULES} rules; use groups and wider patterns.")
            await self.repository.put_rule(connection, project_id, rule)
            await self._note(
                connection,
                caller,
                project_id,
                "policy.rule.put",
                f"Gave {Subject.of_rule(rule)} {level} on {pattern}.",
                subject=str(Subject.of_rule(rule)),
                pattern=pattern,
                level=str(level),
                level_before=None if replaced is None else str(replaced.level),
            )
        return rule

    async def delete_rule(self, caller: Caller, project_id: ProjectId, *, subject: Subject, pattern: str) -> None:
        pattern = check_pattern(pattern)
        async with self._change(caller, project_id) as connection:
            subject_id, _ = await self._resolved(connection, subject)
            if not await self.repository.delete_rule(connection, project_id, subject.kind, subject_id, pattern):
                raise NotFound(f"There is no rule for {subject} on {pattern}; `contextbase policy list` shows those.")
            summary = f"Removed the rule for {subject} on {pattern}."
            await self._note(
                connection, caller, project_id, "policy.rule.delete", summary, subject=str(subject), pattern=pattern
            )

    async def put_default(self, caller: Caller, project_id: ProjectId, level: Level) -> None:
        """The level where no rule matches."""
        async with self._change(caller, project_id) as connection:
            _, before = await self.repository.read(connection, project_id)
            await self.repository.put_default(connection, project_id, level)
            summary = f"Made {level} the project's default."
            await self._note(
                connection, caller, project_id, "policy.default", summary, level=str(level), level_before=str(before)
            )

    async def put_merge_rules(
        self,
        caller: Caller,
        project_id: ProjectId,
        rules: Sequence[tuple[str, str]],
    ) -> None:
        """All of a project's merge rules, in order; those it had are replaced."""
        rules = [(_merge_pattern(pattern), _strategy(strategy)) for pattern, strategy in rules]
        _check_order([pattern for pattern, _ in rules], "merge")
        async with self._change(caller, project_id) as connection:
            await self.repository.put_merge_rules(connection, project_id, rules)
            listed = [{"pattern": pattern, "strategy": strategy} for pattern, strategy in rules]
            summary = f"Set {len(rules)} merge rule{'' if len(rules) == 1 else 's'}."
            await self._note(connection, caller, project_id, "policy.merge", summary, rules=listed)

    async def put_lease_rules(
        self,
        caller: Caller,
        project_id: ProjectId,
        rules: Sequence[tuple[str, bool]],
    ) -> None:
        """Where leases bind, in order: pattern, and whether they do; what was said before is replaced."""
        rules = [(check_pattern(pattern), binding) for pattern, binding in rules]
        _check_order([pattern for pattern, _ in rules], "lease")
        async with self._change(caller, project_id) as connection:
            await self.repository.put_lease_rules(connection, project_id, rules)
            listed = [{"pattern": pattern, "binding": binding} for pattern, binding in rules]
            summary = f"Set {len(rules)} lease rule{'' if len(rules) == 1 else 's'}."
            await self._note(connection, caller, project_id, "policy.leases", summary, rules=listed)

    async def put_rank(
        self,
        caller: Caller,
        project_id: ProjectId,
        name: PrincipalName,
        rank: int,
    ) -> PrincipalName:
        """For the strategy 'priority': who has the higher rank wins. Without one it is 0."""
        if abs(rank) > _HIGHEST_RANK:
            raise InvalidInput(f"A rank is between -{_HIGHEST_RANK} and {_HIGHEST_RANK}.")
        async with self._change(caller, project_id) as connection:
            principal = await self._principal(connection, name)
            await self.repository.put_rank(connection, project_id, principal.id, rank)
            full = PrincipalName(name=principal.name, kind=principal.kind)
            summary = f"Gave {full} rank {rank}."
            await self._note(connection, caller, project_id, "policy.rank", summary, principal=str(full), rank=rank)
        return full

    async def explain(
        self, caller: Caller, project_id: ProjectId, path: TreePath, name: PrincipalName
    ) -> tuple[PrincipalName, LevelDecision, Sequence[RoleBinding]]:
        """What a principal may do at a path, which rule decides it, and the roles that a person has in the project. A
        token may allow less."""
        caller.require(Action.ADMIN, project_id)
        async with self.database.transaction(isolation="repeatable_read", readonly=True) as connection:
            _, default = await self.repository.read(connection, project_id)
            principal = await self._principal(connection, name)
            authority = PathAuthority.of_principal(
                principal,
                rules=await self.repository.rules(connection, project_id),
                groups=await self.repository.groups_of(connection, principal.id),
                default=default,
            )
            account = (await self.accounts.accounts(connection, {principal.id})).get(principal.id)
        full = PrincipalName(name=principal.name, kind=principal.kind)
        if account is not None and (refused := _refused(account, project_id)) is not None:
            return full, LevelDecision(level=Level.HIDDEN, rule=None, reason=refused), ()
        return full, authority.decide(path), () if account is None else _held(account, project_id)

    async def groups(
        self, caller: Caller, *, after: str = "", limit: int = 100
    ) -> list[tuple[str, tuple[PrincipalName, ...]]]:
        """(name, members), by name. Groups are shared by all projects."""
        caller.require(Action.ADMIN)
        async with self.database.connection() as connection:
            return await self.repository.groups(connection, after=after, limit=limit)

    async def create_group(self, caller: Caller, name: str) -> None:
        caller.require(Action.ADMIN)
        _group_name(name)
        async with self.database.transaction() as connection:
            if not await self.repository.create_group(connection, name):
                raise Conflict(f"There is a group named '{name}' already.")
            await self._note(connection, caller, SYSTEM_CHAIN, "group.create", f"Made group '{name}'.", group=name)

    async def add_member(self, caller: Caller, group: str, name: PrincipalName) -> PrincipalName:
        """Also succeeds when it is one already."""
        return await self._change_member(caller, group, name, join=True)

    async def remove_member(self, caller: Caller, group: str, name: PrincipalName) -> PrincipalName:
        """Also succeeds when it is none."""
        return await self._change_member(caller, group, name, join=False)

    async def _change_member(self, caller: Caller, group: str, name: PrincipalName, *, join: bool) -> PrincipalName:
        caller.require(Action.ADMIN)
        async with self.database.transaction() as connection:
            group_id = await self._group(connection, group)
            principal = await self._principal(connection, name)
            full = PrincipalName(name=principal.name, kind=principal.kind)
            change = self.repository.add_member if join else self.repository.remove_member
            if await change(connection, group_id, principal.id):
                await self.repository.bump_those_with_group(connection, group_id)
                action = "group.join" if join else "group.leave"
                summary = f"{full} {'joined' if join else 'left'} group '{group}'."
                await self._note(connection, caller, SYSTEM_CHAIN, action, summary, group=group, principal=str(full))
        return full

    @asynccontextmanager
    async def _change(self, caller: Caller, project_id: ProjectId) -> AsyncIterator[Connection]:
        """A transaction that changes one project's policy."""
        caller.require(Action.ADMIN, project_id)
        async with self.database.transaction() as connection:
            await self.repository.lock(connection, project_id)
            await self.repository.bump(connection, project_id)
            yield connection

    async def _resolved(self, connection: Connection, subject: Subject) -> tuple[UUID | None, str]:
        """A subject's id and full name."""
        if subject.kind is SubjectKind.EVERYONE:
            return None, ""
        if subject.kind is SubjectKind.GROUP:
            return await self._group(connection, subject.name), subject.name
        principal = await self._principal(connection, PrincipalName.parse(subject.name))
        if principal.is_owner:
            raise InvalidInput("The owner may do everything, always: rules are for others.")
        return principal.id, str(PrincipalName(name=principal.name, kind=principal.kind))

    async def _group(self, connection: Connection, name: str) -> UUID:
        group_id = await self.repository.group(connection, name)
        if group_id is None:
            raise NotFound(f"There is no group '{name[:120]}'; `contextbase policy group create` makes one.")
        return group_id

    async def _principal(self, connection: Connection, name: PrincipalName) -> Principal:
        found = await self.repository.principals(connection, name)
        if not found:
            raise NotFound(f"There is no principal {name}; `contextbase token create` makes one with its first token.")
        if len(found) > 1:
            meant = " or ".join(str(principal) for principal in found)
            raise Conflict(f"More than one principal is named {name.name}; say {meant}.")
        return found[0]

    async def _note(
        self, connection: Connection, caller: Caller, chain: UUID, action: str, summary: str, **details: object
    ) -> None:
        await self.audit.note(connection, chain, action, summary, at=self.clock.now(), by=caller.actor, **details)


def _refused(account: PersonAccount, project_id: ProjectId) -> str | None:
    """Why a person cannot reach the project at all."""
    if account.is_disabled:
        return "the account is disabled"
    decision = account.rights.decide(Right.BROWSE_FILES, RoleScope.of_project(project_id))
    return None if decision.allowed else decision.reason


def _held(account: PersonAccount, project_id: ProjectId) -> Sequence[RoleBinding]:
    """What they have in the project, and what holds everywhere."""
    here = (RoleScope.of_project(project_id), PLATFORM)
    held = (each for each in account.rights.bindings if each.scope in here)
    return sorted((each for each in held if Action.READ in GIVEN[each.role, each.scope.kind]), key=str)


def _same_place(one: PathRule, other: PathRule) -> bool:
    return (one.subject_kind, one.subject_id, one.pattern) == (other.subject_kind, other.subject_id, other.pattern)


def _group_name(name: str) -> str:
    """Groups are named like principals."""
    PrincipalName.parse(name)
    if ":" in name:
        raise InvalidInput("A group's name has no colon.")
    return name


def _check_order(patterns: Sequence[str], kind: str) -> None:
    """Of rules of which the last that matches decides."""
    if len(patterns) > MOST_RULES:
        raise InvalidInput(f"A project has at most {MOST_RULES} {kind} rules.")
    if len(set(patterns)) != len(patterns):
        raise InvalidInput(f"Two {kind} rules have the same pattern; the last would decide alone, so keep that.")


def _merge_pattern(pattern: str) -> str:
    """Kept as written: a pattern without a slash, or with one at its end, means something else to a merge rule."""
    check_pattern(pattern)
    return pattern


def _strategy(name: str) -> str:
    if name not in MERGE_STRATEGIES:
        raise InvalidInput(f"{name[:40]!r} is not a strategy: {', '.join(MERGE_STRATEGIES)}.")
    return name
