"""What becomes of one request: its changes against the working tree, which it moves on. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from contextbase.errors import LeaseHeld, PreconditionFailed
from contextbase.gate.access import ChangeRefusal, free_name, refusal_of
from contextbase.gate.answers import conflicts_to_json
from contextbase.gate.batch import BatchContents, Submitted
from contextbase.gate.content_types import content_type
from contextbase.gate.leases import Reservations
from contextbase.gate.model import ChangeAction, ChangeAnswer, ChangeStatus, RequestedChange
from contextbase.gate.outcome import RequestOutcome, Trace
from contextbase.gate.policy import CRITICAL, ProjectPolicy
from contextbase.gate.working_tree import Live, RequestView, WorkingTree
from contextbase.identity.levels import Level, PathAuthority
from contextbase.identity.model import PrincipalKind
from contextbase.ids import ContentHash, NodeId, Seq, TreePath, new_uuid
from contextbase.merge import EntryKind, Merging, Settled, Strategy, TreeChange, TreeEntry, Verdict, settle
from contextbase.storage.landing import NewReview, SideVersion
from contextbase.storage.model import Kind, NewVersion

__all__ = ["Settlement"]


_Told = TypeVar("_Told", ChangeAnswer, Trace)


class Settlement:
    """One request."""

    def __init__(
        self,
        *,
        submitted: Submitted,
        seq: Seq,
        tree: WorkingTree,
        bases: Mapping[TreePath, Live],
        policy: ProjectPolicy,
        authority: PathAuthority,
        reservations: Reservations,
        contents: BatchContents,
        merging: Merging,
    ) -> None:
        self.submitted = submitted
        self.merging = merging
        self.seq = seq
        self.tree = tree
        self.policy = policy
        self.authority = authority
        self.reservations = reservations
        self.contents = contents
        self.outcome = RequestOutcome()
        changes = submitted.request.changes
        self.claimed = {place for change in changes for place in (change.path, change.target) if place is not None}
        self.bases = bases

    def run(self) -> RequestOutcome:
        answers: dict[int, ChangeAnswer] = {}
        open_changes: list[tuple[int, TreeChange]] = []
        view = RequestView(
            tree=self.tree,
            bases=self.bases,
            leaving=self._leaving(),
            authority=self.authority,
            policy=self.policy,
        )
        for index, change in enumerate(self.submitted.request.changes):
            base = self.bases.get(change.path)
            level = self.authority.level(change.path)
            refusal = refusal_of(change, base, level, self.authority) or self._unexpected(change)
            name = self._name_for(change, base, level) if refusal is None else None
            if name is not None and self.reservations:
                refusal = self._reserved(change, name, view.renamed_to(change.path))
            if name is None or refusal is not None:
                answers[index] = _refused(change, refusal or _no_name_left(change))
            else:
                open_changes.append((index, self._as_tree_change(change, base, name)))
        settled = settle(
            [change for _, change in open_changes],
            view,
            self.contents.read,
            policy=self.policy.merge_policy(self.submitted.caller.principal.id),
            merging=self.merging,
        )
        for (index, _), result in zip(open_changes, settled, strict=True):
            self._require_stored(self.submitted.request.changes[index], result)
        for (index, _), result in sorted(zip(open_changes, settled, strict=True), key=lambda pair: _turn(pair[1])):
            answers[index] = self._record(self.submitted.request.changes[index], result)
        self.outcome.answers = [self._where_it_ended(answers[index]) for index in range(len(answers))]
        self.outcome.traces = [self._where_it_ended(trace) for trace in self.outcome.traces]
        return self.outcome

    def _where_it_ended(self, told: _Told) -> _Told:
        """A change that followed a rename may have been moved again, by a later change of the same request."""
        live = None if told.node_id is None or told.result_path is None else self.tree.node(told.node_id)
        if live is None or live.kind is Kind.DELETED or live.path == told.result_path:
            return told
        return replace(told, result_path=live.path)

    def _require_stored(self, change: RequestedChange, settled: Settled) -> None:
        """All that recording the result may refer to. Nothing is recorded yet."""
        if settled.verdict is Verdict.UNCHANGED:
            return
        self.contents.require_stored(None if change.content is None else change.content.inline)
        self.contents.require_stored(settled.new_content)
        self.contents.require_stored(None if settled.merged is None else settled.merged.partial)

    def _leaving(self) -> set[TreePath]:
        """Where what the request deletes stands now, and where the writer saw it; and the folders that it makes."""
        changes = self.submitted.request.changes
        if all(change.action is ChangeAction.WRITE for change in changes):  # as most are
            return set()
        deleted = [change.path for change in changes if change.action is ChangeAction.DELETE]
        made = [change.path for change in changes if change.action is ChangeAction.MAKE_DIRECTORY]
        bases = (self.bases.get(path) for path in deleted)
        now = (self.tree.node(base.node_id) for base in bases if base is not None)
        return {*deleted, *made, *(live.path for live in now if live is not None)}

    def _as_tree_change(self, change: RequestedChange, base: Live | None, name: TreePath) -> TreeChange:
        base_entry = None if base is None else base.entry
        if change.action is ChangeAction.DELETE:
            return TreeChange(path=change.path, entry=None, base=base_entry)
        if change.action is ChangeAction.MAKE_DIRECTORY:
            return TreeChange(path=change.path, entry=TreeEntry(kind=EntryKind.DIRECTORY), base=base_entry)
        content = change.content.hash if change.content is not None else None
        kind = EntryKind(change.kind)
        if change.action is ChangeAction.RENAME and base is not None and change.content is None:
            content, kind = base.content_hash, EntryKind(base.kind)
        was_executable = base is not None and base.executable
        executable = was_executable if change.executable is None else change.executable
        entry = TreeEntry(kind=kind, content=content, executable=executable and kind is EntryKind.FILE)
        if change.action is ChangeAction.RENAME:
            target = change.target or change.path
            return TreeChange(path=target, entry=entry, base=base_entry, renamed_from=change.path)
        return TreeChange(path=name, entry=entry, base=base_entry)

    def _name_for(self, change: RequestedChange, base: Live | None, level: Level) -> TreePath | None:
        """Who may only add, adds beside what has the name already."""
        adds = change.action is ChangeAction.WRITE and base is None
        if not adds or level is not Level.READ_ADD:
            return change.path

        def taken(path: TreePath) -> bool:
            others = path != change.path and path in self.claimed
            return others or self.tree.at(path) is not None or any(self.tree.below(path))

        name = free_name(change.path, taken=taken, authority=self.authority)
        if name is not None:
            self.claimed.add(name)
        return name

    def _unexpected(self, change: RequestedChange) -> ChangeRefusal | None:
        expects = self.submitted.request.expects
        if expects is None:
            return None
        live = self.tree.at(change.path)
        if expects.is_met_by(None if live is None else live.content_hash, exists=live is not None):
            return None
        reason = f"{change.path} was not changed: it is not what the request's If-Match or If-None-Match asks for."
        return ChangeRefusal(code=PreconditionFailed.code, reason=reason)

    def _reserved(self, change: RequestedChange, name: TreePath, renamed_to: TreePath | None) -> ChangeRefusal | None:
        """Why not, if somebody else has a lease that binds on any place where the change would be felt."""
        places = dict.fromkeys(place for place in (change.path, name, change.target, renamed_to) if place is not None)
        of, token = self.submitted.caller.principal.id, self.submitted.request.lease
        found = self.reservations.in_the_way(places, of=of, token=token)
        if found is None:
            return None
        place, lease = found
        reason = f"{place} was not changed: {lease.owner} has a lease there; wait for it, or ask its owner."
        return ChangeRefusal(code=LeaseHeld.code, reason=reason)

    # -- what becomes of a settled change

    def _record(self, change: RequestedChange, settled: Settled) -> ChangeAnswer:
        if settled.verdict is Verdict.UNCHANGED:
            live = self.tree.at(settled.path)
            return self._answer(change, settled, ChangeStatus.UNCHANGED, live)
        if self._needs_person(change, settled):
            return self._review(change, settled, keep_head=True)
        if settled.verdict is Verdict.CONFLICT:
            return self._review(change, settled, keep_head=False)
        if settled.verdict is Verdict.SUPERSEDED:
            side = self._side(change, settled, "superseded")
            live = self.tree.at(settled.path)
            return self._answer(change, settled, ChangeStatus.SUPERSEDED, live, side=side)
        lost = self._side(change, settled, "superseded") if _lost_in_part(change, settled) else None
        status = ChangeStatus.MERGED if settled.verdict is Verdict.MERGED else ChangeStatus.WRITTEN
        return self._answer(change, settled, status, self._write(change, settled), side=lost)

    def _needs_person(self, change: RequestedChange, settled: Settled) -> bool:
        terms = self.submitted.terms
        if terms.is_decided or (terms.closes and self.submitted.caller.principal.kind is PrincipalKind.USER):
            return False  # a person has decided
        return any(map(self.policy.is_critical, {change.path, change.target or change.path, settled.path}))

    def _write(self, change: RequestedChange, settled: Settled) -> Live:
        """The new version a settled change makes, deletions included."""
        source = settled.removed or settled.path
        current = self.tree.at(source)
        base = self.bases.get(change.path)
        entry = settled.entry
        if settled.new_content is not None:
            self.contents.add(settled.new_content)
        content = None if entry is None else entry.content
        size = 0 if content is None else self.contents.sizes[content]
        same_node = base is not None and current is not None and base.node_id == current.node_id
        mixed = same_node and base is not None and current is not None and base.number != current.number
        sent = change.content.hash if change.content is not None else None
        first = self._made_of(current)
        live = Live(
            node_id=current.node_id if current is not None else NodeId(new_uuid()),
            number=current.number + (first is None) if current is not None else 1,
            seq=self.seq,
            path=settled.path,
            kind=Kind.DELETED if entry is None else Kind(entry.kind),
            content_hash=content,
            size=size,
            executable=entry.executable if entry is not None else False,
            mime=self._mime_of(change, current, settled.path, content),
            author=self.submitted.caller.principal.id,
        )
        self.tree.put(live)
        self._refer(content)
        self._refer(sent)
        version = NewVersion(
            node_id=live.node_id,
            number=live.number,
            path=live.path,
            kind=live.kind,
            content_hash=live.content_hash,
            size=live.size,
            executable=live.executable,
            mime=live.mime,
            base_number=base.number if same_node and base is not None else None,
            merged_number=current.number if mixed and current is not None else None,
            sent_hash=sent if sent is not None and sent != content else None,
        )
        if first is not None:
            self.outcome.versions.remove(first)
            version = replace(version, base_number=first.base_number, merged_number=first.merged_number)
        self.outcome.versions.append(version)
        return live

    def _made_of(self, live: Live | None) -> NewVersion | None:
        """The version that this request made of a node already: two of its changes may meet in one, where one follows a
        rename, and are one version."""
        if live is None or live.seq != self.seq:
            return None
        # None for what another server wrote by now, as a commit with this number: this one cannot land.
        return next((made for made in self.outcome.versions if made.node_id == live.node_id), None)

    def _review(self, change: RequestedChange, settled: Settled, *, keep_head: bool) -> ChangeAnswer:
        """Keep the writer's side for a person; what was not contested goes in now."""
        current = self.tree.at(settled.path)
        ours_number = None if current is None else current.number
        side = self._side(change, settled, "in_review")
        conflicts = settled.merged.conflicts if settled.merged is not None else ()
        reason = CRITICAL if keep_head else str(settled.conflict or "content")
        partial = None if keep_head or settled.merged is None else settled.merged.partial
        if partial is not None and current is not None and ContentHash.of(partial) != current.content_hash:
            name = self.contents.add(partial)
            entry = replace(current.entry, content=name)
            current = self._write(change, replace(settled, entry=entry, new_content=None))
        item = NewReview(
            id=new_uuid(),
            side=side,
            author_id=self.submitted.caller.principal.id,
            reason=reason,
            base_path=settled.change.renamed_from or settled.change.path,
            base_seq=change.base,
            ours_number=ours_number,
            conflicts=conflicts_to_json(conflicts),
        )
        self.outcome.reviews.append(item)
        strategy = CRITICAL if keep_head else None
        answer = self._answer(change, settled, ChangeStatus.IN_REVIEW, current, side=side, strategy=strategy)
        return replace(answer, review_id=item.id, conflicts=conflicts, reason=reason)

    def _side(self, change: RequestedChange, settled: Settled, reason: str) -> SideVersion:
        base = self.bases.get(change.path)
        current = self.tree.at(settled.path)
        node_id = current.node_id if current is not None else base.node_id if base is not None else None
        if node_id is None:
            node_id = NodeId(new_uuid())
            self.outcome.bare_nodes.append((node_id, self.seq))
        wanted = settled.change.entry
        content = None if wanted is None else wanted.content
        self._refer(content)
        same_node = base is not None and base.node_id == node_id
        side = SideVersion(
            id=new_uuid(),
            seq=self.seq,
            node_id=node_id,
            path=settled.change.path,
            reason=reason,
            kind=Kind.DELETED if wanted is None else Kind(wanted.kind),
            content_hash=content,
            size=0 if content is None else self.contents.sizes[content],
            executable=wanted.executable if wanted is not None else False,
            mime=self._mime_of(change, base if change.content is None else current, settled.path, content),
            base_number=base.number if same_node and base is not None else None,
        )
        self.outcome.sides.append(side)
        return side

    def _mime_of(
        self, change: RequestedChange, before: Live | None, path: TreePath, content: ContentHash | None
    ) -> str:
        """The type of a content that follows what was `before`. Of one that only moves, the first bytes do not count:
        they are at hand only if something else in the batch needs them."""
        if content is None or change.mime:
            return "" if content is None else change.mime
        start = None if change.content is None else self.contents.start_of(content)
        if before is None:
            return content_type(path, start)
        return content_type(path, start, before=before.mime, path_before=before.path)

    def _refer(self, content_hash: ContentHash | None) -> None:
        if content_hash is not None and content_hash in self.contents.loaded:
            self.outcome.stored.add(content_hash)

    def _answer(
        self,
        change: RequestedChange,
        settled: Settled,
        status: ChangeStatus,
        live: Live | None,
        *,
        side: SideVersion | None = None,
        strategy: str | None = None,
    ) -> ChangeAnswer:
        base = self.bases.get(change.path)
        if strategy is None and settled.merged is not None:
            strategy = settled.merged.strategy
        if strategy is None and status is ChangeStatus.IN_REVIEW:
            strategy = Strategy.REVIEW.value  # a conflict about the tree, which no type of file merges
        self.outcome.traces.append(
            Trace(
                change=change,
                status=status,
                result_path=settled.path,
                node_id=live.node_id if live else None,
                old_hash=base.content_hash if base else None,
                new_hash=live.content_hash if live else None,
                strategy=strategy,
            )
        )
        return ChangeAnswer(
            path=change.path,
            status=status,
            result_path=live.path if live is not None and live.kind is not Kind.DELETED else None,
            node_id=live.node_id if live is not None else None,
            number=live.number if live is not None else None,
            strategy=strategy,
            notes=settled.merged.notes if settled.merged is not None else (),
            side_version_id=side.id if side is not None else None,
        )


def _refused(change: RequestedChange, refusal: ChangeRefusal) -> ChangeAnswer:
    return ChangeAnswer(path=change.path, status=ChangeStatus.REFUSED, code=refusal.code, reason=refusal.reason)


def _no_name_left(change: RequestedChange) -> ChangeRefusal:
    reason = f"{change.path} was not added: the name is taken, and you may add no numbered one beside it."
    return ChangeRefusal(code="forbidden", reason=reason)


def _lost_in_part(change: RequestedChange, settled: Settled) -> bool:
    """Whether the policy kept the head's text where both changed it: the writer's is to be kept aside."""
    if settled.merged is None or settled.merged.other is None or change.content is None:
        return False
    return ContentHash.of(settled.merged.other) == change.content.hash


def _turn(settled: Settled) -> bool:
    """Deletions are recorded first: a new node may take the path."""
    return settled.change.entry is not None
