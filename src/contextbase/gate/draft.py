"""A batch in the making: requests planned one after the other upon a head that is known in memory.

What the plan needs and the tree does not know yet is loaded. A draft holds if the head, once locked, is the one it was
made upon: whoever writes it looks.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from uuid import UUID

from contextbase.db.database import Connection
from contextbase.errors import Conflict, ContentPurged, ContextbaseError, CursorOutdated, InvalidInput
from contextbase.gate.answers import answer_from_json, seen_by
from contextbase.gate.batch import BatchPlan, ContentNeeded, Contents, Submitted
from contextbase.gate.cache import ContentCache, PolicyBook, PolicyPage
from contextbase.gate.folders import expand_folders
from contextbase.gate.leases import HeldLease, LeaseBoard, Reservations, lease_lost
from contextbase.gate.model import Change, ChangeAction, CommitAnswer
from contextbase.gate.plan import Planner
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.repository import GateRepository
from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import Clock, ContentHash, PrincipalId, ProjectId, Seq, TokenId, TreePath
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.landing import LockedHead
from contextbase.storage.tree import TreeRepository

__all__ = ["Draft", "Drafter"]

_LONGEST_TURN_SECONDS: Final = 0.0002
_MUCH_TO_MERGE: Final = 16 * 1024  # bytes of one side: about what takes a few milliseconds
_Who = tuple[TokenId, PrincipalId]


@dataclass(kw_only=True, slots=True)
class Draft:
    project_id: ProjectId
    head: LockedHead  # what it is made upon
    tree: WorkingTree  # that head as the draft will leave it
    rules: PolicyPage
    planner: Planner
    contents: Contents
    leases: tuple[HeldLease, ...] | None = None  # as the draft takes them to be; None: it does not depend on any
    reservations: Reservations
    fresh: list[Submitted] = field(default_factory=list)  # the requests of the plan, in its order
    _answered: dict[UUID, CommitAnswer | ContextbaseError] = field(default_factory=dict)

    @property
    def plan(self) -> BatchPlan:
        return self.planner.plan

    @property
    def next_head(self) -> LockedHead:
        """The head once this is written."""
        if not self.plan.commits:
            return self.head
        return replace(self.head, seq=Seq(self.head.seq + len(self.plan.commits)), commit_id=self.plan.commits[-1].id)

    def answer_at_once(self, submitted: Submitted, answer: CommitAnswer | ContextbaseError) -> None:
        """It is no part of the plan: it happened before, or cannot."""
        self._answered[submitted.commit_id] = answer

    def answers(self, batch: Sequence[Submitted]) -> list[CommitAnswer | ContextbaseError]:
        new = {submitted.commit_id: answer for submitted, answer in zip(self.fresh, self.plan.answers, strict=True)}
        return [new.get(submitted.commit_id) or self._answered[submitted.commit_id] for submitted in batch]


class Drafter:
    def __init__(
        self,
        *,
        repository: GateRepository,
        policies: PolicyBook,
        catalog: BlobCatalog,
        contents: ContentCache,
        leases: LeaseBoard,
        clock: Clock,
    ) -> None:
        self._repository = repository
        self._policies = policies
        self._catalog = catalog
        self._contents = contents
        self._leases = leases
        self._clock = clock
        self._tree = TreeRepository()

    async def begin(
        self, connection: Connection, project_id: ProjectId, head: LockedHead, tree: WorkingTree | None = None
    ) -> Draft:
        """An empty draft upon a head, of which `tree` is what is known."""
        rules = await self._policies.page(connection, project_id, head.policy_version)
        tree = WorkingTree() if tree is None else tree
        contents = Contents()
        return Draft(
            project_id=project_id,
            head=head,
            tree=tree,
            rules=rules,
            contents=contents,
            reservations=Reservations(rules.policy),
            planner=Planner(head=head.seq, tree=tree, policy=rules.policy, contents=contents),
        )

    async def holds(self, connection: Connection, draft: Draft) -> bool:
        """Whether the leases that the draft depends on are what it takes them to be; ask under the head's lock."""
        if draft.leases is None:
            return True
        held = await self._leases.held(connection, draft.project_id)
        if draft.rules.policy.uses_leases:
            return held == draft.leases
        named = {submitted.request.lease for submitted in draft.fresh} - {None}
        return named <= {lease.token for lease in held}

    async def recall(self, connection: Connection, draft: Draft, batch: Sequence[Submitted]) -> list[Submitted]:
        """Those that did not happen before; the others get the answer they had, as far as they may see it now."""
        keyed = [(submitted, (submitted.caller.principal.id, submitted.request.key)) for submitted in batch]
        known = await self._repository.answered(
            connection, draft.project_id, [(who, key) for _, (who, key) in keyed if key is not None]
        )
        authorities = await self._authorities(connection, draft.rules, batch) if known else {}
        for submitted, (who, key) in keyed:
            if key is not None and (who, key) in known:
                request_hash, text = known[who, key]
                same = request_hash == submitted.request_hash
                answer = seen_by(authorities[_who(submitted)], answer_from_json(text)) if same else _other_request(key)
                draft.answer_at_once(submitted, answer)
        return [s for s in batch if s.request.key is None or (s.caller.principal.id, s.request.key) not in known]

    async def extend(self, connection: Connection, draft: Draft, batch: Sequence[Submitted]) -> None:
        """Plan these requests too."""
        if draft.rules.policy.uses_leases or any(submitted.request.lease is not None for submitted in batch):
            batch = await self._with_their_leases(connection, draft, batch)
        authorities = await self._authorities(connection, draft.rules, batch)
        fresh = await self._admitted(connection, draft, batch, authorities)
        changes = [change for submitted in fresh for change in submitted.request.changes]
        bases = await self._repository.load(
            connection,
            draft.project_id,
            draft.tree,
            changes,
            with_authors=draft.rules.policy.uses_ranks,
            added=_added(fresh, authorities),
        )
        _bring(draft, fresh, bases)
        await self._preload(connection, draft, fresh, bases)
        turn_began = time.perf_counter()
        for submitted in fresh:
            if time.perf_counter() - turn_began > _LONGEST_TURN_SECONDS:
                await asyncio.sleep(0)  # merges take their time; whoever writes and answers meanwhile shall not wait
                turn_began = time.perf_counter()
            authority = authorities[_who(submitted)]
            planned = _without_hidden_bases(submitted, bases, draft.tree, authority)
            own = {change.path: bases.get((change.path, change.base)) for change in planned.request.changes}
            await self._plan(draft, planned, {path: live for path, live in own.items() if live is not None}, authority)

    async def _plan(
        self, draft: Draft, submitted: Submitted, bases: Mapping[TreePath, Live], authority: PathAuthority
    ) -> None:
        while True:
            try:
                stored = await self._add(draft, submitted, bases, authority)
            except ContentNeeded as needed:
                try:
                    draft.contents.loaded[needed.content_hash] = await self._catalog.read(needed.content_hash)
                except ContentPurged:
                    draft.contents.purged.add(needed.content_hash)
            else:
                draft.fresh.append(submitted)
                for name in stored:  # the next draft may need it before this one is written
                    self._contents.keep(name, draft.contents.loaded[name])
                return

    async def _add(
        self, draft: Draft, submitted: Submitted, bases: Mapping[TreePath, Live], authority: PathAuthority
    ) -> set[ContentHash]:
        """Merges of much text are made in a thread: whoever has nothing to do with them is served meanwhile."""
        planned = partial(draft.planner.add, submitted, bases, authority, draft.reservations, self._clock.now())
        return await asyncio.to_thread(planned) if _merges_much(draft.tree, submitted, bases) else planned()

    async def _with_their_leases(
        self, connection: Connection, draft: Draft, batch: Sequence[Submitted]
    ) -> Sequence[Submitted]:
        """Learn of the leases; those of the requests whose own lease is held, or that name none."""
        if draft.leases is None:
            draft.leases = await self._leases.held(connection, draft.project_id)
            draft.reservations = await self._reservations(connection, draft.rules.policy, draft.leases)
        held: set[object] = {(lease.token, lease.principal.id) for lease in draft.leases}
        on_time: list[Submitted] = []
        late: list[Submitted] = []
        for submitted in batch:
            token = submitted.request.lease
            is_late = token is not None and (token, submitted.caller.principal.id) not in held
            (late if is_late else on_time).append(submitted)
        for submitted in await self.recall(connection, draft, late):  # what was sent before, and made it, did
            draft.answer_at_once(submitted, lease_lost(submitted.request.lease))
        return on_time

    async def _reservations(
        self, connection: Connection, policy: ProjectPolicy, leases: Sequence[HeldLease]
    ) -> Reservations:
        principals = {lease.principal.id for lease in leases} if policy.uses_groups else ()
        groups = await self._repository.groups(connection, principals)
        authorities = {
            lease.principal.id: policy.authority_of(lease.principal, groups.get(lease.principal.id, frozenset()))
            for lease in leases
        }
        return Reservations(policy, [(lease, authorities[lease.principal.id]) for lease in leases])

    async def _authorities(
        self, connection: Connection, rules: PolicyPage, batch: Sequence[Submitted]
    ) -> dict[_Who, PathAuthority]:
        """By token and whom it acts for. Memberships are read anew: they are not part of the policy's version."""
        callers = {_who(submitted): submitted.caller for submitted in batch}
        principals = {caller.principal.id for caller in callers.values()} if rules.policy.uses_groups else ()
        groups = await self._repository.groups(connection, principals)
        return {
            who: rules.authority(caller, groups.get(caller.principal.id, frozenset()))
            for who, caller in callers.items()
        }

    async def _admitted(
        self,
        connection: Connection,
        draft: Draft,
        batch: Sequence[Submitted],
        authorities: Mapping[_Who, PathAuthority],
    ) -> list[Submitted]:
        """The requests that can be planned, with every change of a folder spelt out."""
        admitted = []
        for submitted in batch:
            request = submitted.request
            if request.epoch not in (None, draft.head.epoch):
                draft.answer_at_once(submitted, _from_before_a_restore())
                continue
            if max(change.base for change in request.changes) > draft.head.seq:
                draft.answer_at_once(submitted, _from_the_future(submitted, draft.head.seq))
                continue
            changes = request.changes
            authority = authorities[_who(submitted)]
            try:
                if not request.is_spelt_out:
                    changes = await expand_folders(connection, self._tree, request.project_id, authority, changes)
                spelt_out = request if changes is request.changes else replace(request, changes=changes)
            except ContextbaseError as error:
                draft.answer_at_once(submitted, error)
                continue
            admitted.append(submitted if spelt_out is request else replace(submitted, request=spelt_out))
        return admitted

    async def _preload(
        self,
        connection: Connection,
        draft: Draft,
        batch: Sequence[Submitted],
        bases: Mapping[tuple[TreePath, Seq], Live],
    ) -> None:
        """The contents that merges will ask for, in one reading."""
        changes = [change for submitted in batch for change in submitted.request.changes]
        times: Counter[TreePath] = Counter(change.path for change in changes)
        wanted: set[ContentHash] = set()
        for change in changes:
            current, base = draft.tree.at(change.path), bases.get((change.path, change.base))
            if current is base and times[change.path] == 1:
                continue
            wanted |= {live.content_hash for live in (current, base) if live is not None and live.content_hash}
            if change.content is not None:
                wanted.add(change.content.hash)
        loaded = draft.contents.loaded
        loaded |= self._contents.find(wanted - loaded.keys())
        read = await self._repository.inline_contents(connection, [name for name in wanted if name not in loaded])
        for name, content in read.items():
            self._contents.keep(name, content)
        loaded |= read


def _bring(draft: Draft, batch: Sequence[Submitted], bases: Mapping[tuple[TreePath, Seq], Live]) -> None:
    """Make known what the requests bring along, and the size of what they name."""
    contents = draft.contents
    for submitted in batch:
        for change in submitted.request.changes:
            if change.content is not None:
                contents.sizes[change.content.hash] = change.content.size
                if change.content.inline is not None:
                    contents.loaded[change.content.hash] = change.content.inline
            base = bases.get((change.path, change.base))
            now = None if base is None else draft.tree.node(base.node_id)
            for live in (base, now, draft.tree.at(change.path)):
                if live is not None and live.content_hash is not None:
                    contents.sizes[live.content_hash] = live.size


def _merges_much(tree: WorkingTree, submitted: Submitted, bases: Mapping[TreePath, Live]) -> bool:
    for change in submitted.request.changes:
        base, current = bases.get(change.path), tree.at(change.path)
        if change.content is None or current is base:
            continue
        now = None if base is None else tree.node(base.node_id)
        sizes = [live.size for live in (base, current, now) if live is not None]
        if max([change.content.size, *sizes]) > _MUCH_TO_MERGE:
            return True
    return False


def _without_hidden_bases(
    submitted: Submitted, bases: Mapping[tuple[TreePath, Seq], Live], tree: WorkingTree, authority: PathAuthority
) -> Submitted:
    """What has been moved to where its writer may not see it is gone, to that writer. If something else has taken its
    place, a merge of the two would show the old one, which whoever reads that snapshot does not see any more: such a
    change is made from nothing."""
    if authority.sees_everything:
        return submitted

    def is_hidden(change: Change) -> bool:
        base = bases.get((change.path, change.base))
        now = None if base is None else tree.node(base.node_id)
        return now is not None and not authority.sees(now.path) and tree.at(change.path) is not None

    changes = submitted.request.changes
    if not any(map(is_hidden, changes)):
        return submitted
    seen = tuple(replace(change, base=Seq(0)) if is_hidden(change) else change for change in changes)
    return replace(submitted, request=replace(submitted.request, changes=seen))


def _who(submitted: Submitted) -> _Who:
    return submitted.caller.token.id, submitted.caller.principal.id


def _added(batch: Sequence[Submitted], authorities: Mapping[_Who, PathAuthority]) -> set[TreePath]:
    """The names that somebody writes who may only add."""
    return {
        change.path
        for submitted in batch
        for change in submitted.request.changes
        if change.action is ChangeAction.WRITE and authorities[_who(submitted)].level(change.path) is Level.READ_ADD
    }


def _from_the_future(submitted: Submitted, head: Seq) -> InvalidInput:
    base = max(change.base for change in submitted.request.changes)
    return InvalidInput(f"The base {base} is after the project's head {head}.")


def _from_before_a_restore() -> CursorOutdated:
    return CursorOutdated("The changes were made from a checkout before the project was restored; check it out anew.")


def _other_request(key: str) -> Conflict:
    return Conflict(f"The idempotency key '{key}' was used for another request; use a new one.", key=key)
