"""Making a draft: requests are planned one after the other on a head that is known in memory.

What the plan needs and the tree does not know yet is loaded. A draft holds if the head, once locked, is the one it was
made on: whoever writes it checks.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from contextbase.db.database import Connection
from contextbase.errors import Conflict, ContentPurged, ContextbaseError, CursorOutdated, InvalidInput, Unavailable
from contextbase.gate.answers import answer_from_json, seen_by
from contextbase.gate.batch import BatchContents, ContentNeeded, ContentUnstored, Submitted
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.draft import Draft
from contextbase.gate.folders import brought_along, expand_folders, may_name_folders
from contextbase.gate.large_contents import LargeContents
from contextbase.gate.leases import ActiveLease, LeaseBoard, Reservations, lease_lost
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.model import ChangeAction, RequestedChange
from contextbase.gate.plan import Planner
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.policy_cache import CachedPolicy, PolicyCache
from contextbase.gate.repository import GateRepository, purged_at
from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import Clock, ContentHash, ProjectId, Seq, TreePath
from contextbase.storage.landing import HeadState
from contextbase.storage.tree import TreeRepository

__all__ = ["Drafter"]

_LONGEST_TURN_SECONDS: Final = 0.0002


class Drafter:
    def __init__(
        self,
        *,
        repository: GateRepository,
        policies: PolicyCache,
        large: LargeContents,
        merges: LongMerges,
        contents: ContentCache,
        leases: LeaseBoard,
        clock: Clock,
    ) -> None:
        self._repository = repository
        self._policies = policies
        self._large = large
        self._merges = merges
        self._contents = contents
        self._leases = leases
        self._clock = clock
        self._tree = TreeRepository()

    async def begin(
        self, connection: Connection, project_id: ProjectId, head: HeadState, tree: WorkingTree | None = None
    ) -> Draft:
        """An empty draft on a head, of which `tree` is what is known."""
        rules = await self._policies.page(connection, project_id, head.policy_version)
        tree = WorkingTree() if tree is None else tree
        contents = BatchContents(limit=self._large.limit)
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
        for run in _runs(batch, authorities):
            await self._extend(connection, draft, run, authorities)

    async def _extend(
        self,
        connection: Connection,
        draft: Draft,
        batch: Sequence[Submitted],
        authorities: Mapping[int, PathAuthority],
    ) -> None:
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
        """Whatever cannot be had for this request, neither a merge nor a large content, fails this request alone."""
        try:
            stored = await self._added(draft, submitted, bases, authority)
        except Unavailable as error:
            draft.answer_at_once(submitted, error)
            return
        draft.fresh.append(submitted)
        for name in stored:  # the next draft may need it before this one is written
            self._contents.keep(name, draft.contents.loaded[name])

    async def _added(
        self, draft: Draft, submitted: Submitted, bases: Mapping[TreePath, Live], authority: PathAuthority
    ) -> set[ContentHash]:
        contents, owner = draft.contents, submitted.caller.principal.id
        add = partial(draft.planner.add, submitted, bases, authority, draft.reservations, at=self._clock.now())
        while True:
            try:
                return await self._merges.settled(owner, add)
            except ContentNeeded as needed:
                name = needed.content_hash
                try:
                    contents.loaded[name] = await self._large.read(name, contents.sizes.get(name, 0))
                except ContentPurged:
                    contents.purged.add(name)
            except ContentUnstored as unstored:
                await self._large.store(unstored.content_hash, unstored.content)
                submitted.stored.add(unstored.content_hash)
                contents.put.add(unstored.content_hash)

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
        self, connection: Connection, policy: ProjectPolicy, leases: Sequence[ActiveLease]
    ) -> Reservations:
        principals = {lease.principal.id for lease in leases} if policy.uses_groups else ()
        groups = await self._repository.groups(connection, principals)
        authorities = {
            lease.principal.id: policy.authority_of(lease.principal, groups.get(lease.principal.id, frozenset()))
            for lease in leases
        }
        return Reservations(policy, [(lease, authorities[lease.principal.id]) for lease in leases])

    async def _authorities(
        self, connection: Connection, rules: CachedPolicy, batch: Sequence[Submitted]
    ) -> dict[int, PathAuthority]:
        """By `_who`. Memberships are read again: they are not part of the policy's version."""
        callers = {_who(submitted): submitted.caller for submitted in batch}
        principals = rules.policy.in_groups(callers.values())
        groups = await self._repository.groups(connection, principals)
        return {who: rules.authority(caller, groups) for who, caller in callers.items()}

    async def _admitted(
        self,
        connection: Connection,
        draft: Draft,
        batch: Sequence[Submitted],
        authorities: Mapping[int, PathAuthority],
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
            if draft.rules.policy.has_purged and (purged := await self._purged(connection, submitted, authority)):
                draft.answer_at_once(submitted, purged)
                continue
            try:
                if any(change.base_version is not None for change in changes):
                    changes = await self._from_versions(connection, request.project_id, authority, changes)
                if not submitted.terms.is_spelt_out:
                    changes = await expand_folders(
                        connection, self._tree, request.project_id, authority, changes, tree=draft.tree
                    )
                elif submitted.terms.moved:
                    changes = await brought_along(connection, self._repository, draft.tree, authority, submitted)
                spelt_out = request if changes is request.changes else replace(request, changes=changes)
            except InvalidInput as error:
                draft.answer_at_once(submitted, error if submitted.caller.may_read else _one_place_twice())
                continue
            except ContextbaseError as error:
                draft.answer_at_once(submitted, error)
                continue
            admitted.append(submitted if spelt_out is request else replace(submitted, request=spelt_out))
        return admitted

    async def _purged(
        self, connection: Connection, submitted: Submitted, authority: PathAuthority
    ) -> ContentPurged | None:
        """Why not, if it brings what was purged where its writer could have read it."""
        if not submitted.caller.may_read:
            return None
        names = {change.content.hash for change in submitted.request.changes if change.content is not None}
        found = await self._repository.purged_for(connection, submitted.request.project_id, names, authority)
        return None if not found else purged_at(min(found.values()))

    async def _from_versions(
        self,
        connection: Connection,
        project_id: ProjectId,
        authority: PathAuthority,
        changes: tuple[RequestedChange, ...],
    ) -> tuple[RequestedChange, ...]:
        """The changes with the seqs of the versions that they were made from."""
        asked = {(change.path, change.base_version) for change in changes if change.base_version}
        found = await self._repository.seqs_of_versions(connection, project_id, asked, authority)
        if missing := asked - found.keys():
            path, number = min(missing, key=str)
            raise InvalidInput(f"{path} has no version {number} that you may read; check it out again.")
        return tuple(
            change
            if change.base_version is None
            else replace(change, base=found.get((change.path, change.base_version), Seq(0)), base_version=None)
            for change in changes
        )

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
        contents.put |= submitted.stored
        for change in submitted.request.changes:
            if change.content is not None:
                contents.sizes[change.content.hash] = change.content.size
                if change.content.start is not None:
                    contents.starts[change.content.hash] = change.content.start
                if change.content.inline is not None:
                    contents.loaded[change.content.hash] = change.content.inline
            base = bases.get((change.path, change.base))
            now = None if base is None else draft.tree.node(base.node_id)
            for live in (base, now, draft.tree.at(change.path)):
                if live is not None and live.content_hash is not None:
                    contents.sizes[live.content_hash] = live.size


def _without_hidden_bases(
    submitted: Submitted, bases: Mapping[tuple[TreePath, Seq], Live], tree: WorkingTree, authority: PathAuthority
) -> Submitted:
    """What has been moved to where its writer may not see it is gone, to that writer. A delete or rename of it finds
    nothing, as a checkout of that snapshot does now. A write counts as made from something deleted, so that a stale
    copy does not come back by itself; but if something else has taken the place, it is made from nothing: a merge of
    the two would show the old one."""
    if authority.sees_everything:
        return submitted

    def is_hidden(change: RequestedChange) -> bool:
        base = bases.get((change.path, change.base))
        now = None if base is None else tree.node(base.node_id)
        if now is None or authority.sees(now.path):
            return False
        return change.action in (ChangeAction.DELETE, ChangeAction.RENAME) or tree.at(change.path) is not None

    changes = submitted.request.changes
    if not any(map(is_hidden, changes)):
        return submitted
    seen = tuple(replace(change, base=Seq(0)) if is_hidden(change) else change for change in changes)
    return replace(submitted, request=replace(submitted.request, changes=seen))


def _runs(batch: Sequence[Submitted], authorities: Mapping[int, PathAuthority]) -> Iterator[Sequence[Submitted]]:
    """The requests in their order, split so that nobody's folders are spelt out before the renames ahead of it are
    planned: what they move out of the writer's sight is not in the folder, to that writer."""
    start, has_renames = 0, False
    for position, submitted in enumerate(batch):
        changes = submitted.request.changes
        follows_others = bool(submitted.terms.moved)  # what they add to a folder that it moves goes along
        sees_less = has_renames and may_name_folders(changes) and not authorities[_who(submitted)].sees_everything
        if (follows_others and position > start) or sees_less:
            yield batch[start:position]
            start, has_renames = position, False
        has_renames = has_renames or any(change.action is ChangeAction.RENAME for change in changes)
    yield batch[start:]


def _who(submitted: Submitted) -> int:
    """Each request has a caller of its own, also when it is spelt out; to compare what callers may do takes longer."""
    return id(submitted.caller)


def _added(batch: Sequence[Submitted], authorities: Mapping[int, PathAuthority]) -> set[TreePath]:
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


def _one_place_twice() -> InvalidInput:
    return InvalidInput("Two changes of this commit are for the same file in a folder; make them one.")


def _from_before_a_restore() -> CursorOutdated:
    return CursorOutdated("The changes were made from a checkout before the project was restored; check it out again.")


def _other_request(key: str) -> Conflict:
    return Conflict(f"The idempotency key '{key}' was used for another request; use a new one.", key=key)
