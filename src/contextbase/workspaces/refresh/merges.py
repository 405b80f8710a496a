"""What is to stand at each path after a refresh: what the project has there, or a merge of it with the agent's file."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contextbase.gate.long_merges import LongMerges
from contextbase.ids import ContentHash, TreePath
from contextbase.merge import MergeOutcome
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.commit_plan import PendingChange
from contextbase.workspaces.contents import read_content
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import FolderContent
from contextbase.workspaces.ports import LocalContent
from contextbase.workspaces.refresh.journal import RefreshStep
from contextbase.workspaces.refresh.plan import KeptReason, OthersChange, PathPlan, RefreshAction
from contextbase.workspaces.refresh.target import RefreshTarget

__all__ = ["Prepared", "RefreshMerges", "contents_needed"]


@dataclass(kw_only=True, slots=True)
class Prepared:
    steps: list[RefreshStep] = field(default_factory=list)
    sources: dict[int, LocalContent] = field(default_factory=dict)  # of the steps that put a file or link in place
    agreed: list[OthersChange] = field(default_factory=list)  # the agent's file has it all already
    kept: dict[TreePath, KeptReason] = field(default_factory=dict)


def contents_needed(batch: Iterable[PathPlan]) -> set[ContentHash]:
    wanted = [one.change.head for one in batch]
    wanted += [one.change.given for one in batch if one.action is RefreshAction.MERGE]
    return {content.hash for content in wanted if content is not None and content.hash is not None}


class RefreshMerges:
    def __init__(self, merges: LongMerges) -> None:
        self._merges = merges

    async def prepared(
        self,
        target: RefreshTarget,
        batch: Sequence[PathPlan],
        contents: Mapping[ContentHash, LocalContent],
    ) -> Prepared:
        prepared = Prepared()
        for number, one in enumerate(batch):
            change, head = one.change, one.change.head
            content, source = head, None if head is None or head.hash is None else contents[head.hash]
            if one.action is RefreshAction.MERGE:
                merged = await self._merged(target, one, contents)
                if isinstance(merged, KeptReason):
                    prepared.kept[change.path] = merged
                    continue
                content, source = merged
                if content == one.mine:
                    prepared.agreed.append(change)
                    continue
            elif isinstance(source, bytes) and head is not None and ContentHash.of(source) != head.hash:
                # It was purged. The folder shows the note that stands for it, and goes on from that.
                content = head = FolderContent(kind=head.kind, hash=ContentHash.of(source), size=len(source))
            prepared.steps.append(
                RefreshStep(
                    number=number,
                    path=change.path,
                    expected=one.mine,
                    content=content,
                    head=head,
                    origin=change.origin,
                )
            )
            if source is not None:
                prepared.sources[number] = source
        return prepared

    async def _merged(
        self, target: RefreshTarget, one: PathPlan, contents: Mapping[ContentHash, LocalContent]
    ) -> tuple[FolderContent, bytes] | KeptReason:
        given, head, mine = one.change.given, one.change.head, one.mine
        assert head is not None, "only files are merged"  # noqa: S101 - for the type checker
        assert mine is not None, "only files are merged"  # noqa: S101 - likewise
        own = await in_thread(_own_content, target.work, target.pending[one.change.path], mine)
        if own is None:
            return KeptReason.IN_THE_WAY
        place = target.record.paths.in_project(one.change.path)
        sides = (_bytes_of(given, contents), _bytes_of(head, contents), own)
        merged = await self._merges.settled(
            target.record.principal.id,
            lambda merging: merging(*sides, path=place, policy=target.merge_policy),
        )
        await asyncio.sleep(0)  # a short merge is made right here, and there may be many
        if merged.outcome is MergeOutcome.CONFLICT or merged.content is None or merged.other is not None:
            return KeptReason.CONFLICT
        executable = mine.executable if given is None or head.executable == given.executable else head.executable
        name, size = ContentHash.of(merged.content), len(merged.content)
        return FolderContent(kind=Kind.FILE, hash=name, size=size, executable=executable), merged.content


def _own_content(work: Path, pending: PendingChange, mine: FolderContent) -> bytes | None:
    """The agent's file, as it was when it was looked at; None: it has gone on."""
    try:
        with Folder(work) as folder:
            found = read_content(pending, mine, folder, most=mine.size + 1)
    except OSError:
        return None
    return found if ContentHash.of(found) == mine.hash else None


def _bytes_of(content: FolderContent | None, contents: Mapping[ContentHash, LocalContent]) -> bytes | None:
    found = None if content is None or content.hash is None else contents[content.hash]
    return found.read_bytes() if isinstance(found, Path) else found
