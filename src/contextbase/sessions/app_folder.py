"""The folder of an app's session, composed by its runtime manifest before each run, and stored after it.

L1, what the session left, is there already: the folder is a workspace of the session's own prefix in the app's tree.
The other layers are put around it: the template (L0), knowledge (L2), the user's files (L3), mount points, seeds and
the check of what is required (L4). Done again, it changes nothing.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from contextbase.catalog.app_keys import AppPlace, path_of_key
from contextbase.catalog.app_session_repository import AppSessionRepository
from contextbase.catalog.layers import LayerFiles, LayerStep, StepAction, is_protected, overlay_steps, template_steps
from contextbase.catalog.manifest import inside
from contextbase.catalog.model import AppSession, PublishedManifest
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.restore_plan import RunContext, build_restore_plan
from contextbase.catalog.sync_filter import SyncFilter
from contextbase.db.database import Database
from contextbase.errors import Conflict
from contextbase.gate.long_merges import LongMerges
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.merge import MergeOutcome, MergePolicy
from contextbase.sessions.app_settings import AppRunSettings
from contextbase.sessions.layer_files import (
    CompositionMark,
    clean_up,
    missing_paths,
    prepare_folder,
    put_layer,
    read_mark,
    standing_at,
    standing_below,
    take_away,
    write_mark,
)
from contextbase.sessions.model import AgentSession
from contextbase.sessions.user_files import UserFiles
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.wire.manifest import RestoreLayer, RestorePlan, RuntimeManifest
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import FolderContent, Owner, SnapshotKey
from contextbase.workspaces.ports import LocalContent, SnapshotSource
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["AppFolders"]

SKILLS: Final = TreePath(".kb/skills")
"""Where a session's folder has the skills that its configuration names; agents/skills.py looks there."""

_SKILLS: Final = TreePath("registry/skills")
_SKILL_FILE: Final = TreePath("SKILL.md")
_BATCH: Final = 100  # files that are put in one go
_AT_ONCE: Final = 2  # batches: one is read while the other is written
_NOTHING: Final[LayerFiles] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class AppFolders:
    database: Database
    apps: AppRepository
    settings: AppRunSettings
    sessions: AppSessionRepository
    source: SnapshotSource
    merges: LongMerges
    files: UserFiles
    owner: Owner

    async def compose(self, session: AgentSession, record: WorkspaceRecord) -> str:
        """Make the folder what the manifest says; returns the version. `Conflict` if it has no template, or something
        that is required is missing."""
        row = await self._row(session)
        mark = await in_thread(read_mark, record.path)
        published = await self._manifest(row, row.pinned_version)
        plan = build_restore_plan(published.manifest, _context(row, published))
        folder = _Folder(self, row, record, published, plan)
        await folder.clean()
        before = row.runtime_version if mark is None else mark.runtime_version
        await folder.put_template(None if before is None else await self._manifest(row, before))
        await folder.put_knowledge()
        await folder.put_skills(await self.settings.skills(session))
        shown = None if mark is None else mark.files_seq
        seq = await self.files.exchange(session, row, record, published.manifest, shown)
        await folder.finish()
        version = published.manifest.runtime_version
        await in_thread(write_mark, record.path, self.owner, CompositionMark(runtime_version=version, files_seq=seq))
        return version

    async def collect(self, session: AgentSession, record: WorkspaceRecord) -> None:
        """Bring what was done to the user's own files where they belong."""
        mark = await in_thread(read_mark, record.path)
        if mark is None:
            return
        row = await self._row(session)
        published = await self._manifest(row, mark.runtime_version)
        seq = await self.files.exchange(session, row, record, published.manifest, mark.files_seq)
        new = CompositionMark(runtime_version=mark.runtime_version, files_seq=seq)
        if new != mark:
            await in_thread(write_mark, record.path, self.owner, new)

    async def stored(self, session: AgentSession, record: WorkspaceRecord) -> None:
        """All of the folder is stored: what it was composed of is the base of the next time, wherever that is."""
        mark = await in_thread(read_mark, record.path)
        if mark is not None:
            async with self.database.connection() as connection:
                await self.sessions.put_version(connection, session.id, mark.runtime_version)

    async def prefix(self, session: AgentSession) -> str:
        """The key of the session's own files."""
        row = await self._row(session)
        place = AppPlace(app=row.app, project=row.project, login=row.login)
        return place.key(place.workspace(str(session.id)))

    async def _row(self, session: AgentSession) -> AppSession:
        async with self.database.connection() as connection:
            row = await self.sessions.find(connection, session.id)
        if row is None:
            raise Conflict("The session's app is gone; start a new session.")
        return row

    async def _manifest(self, row: AppSession, version: str | None) -> PublishedManifest:
        async with self.database.connection() as connection:
            found = await self.apps.manifest(connection, row.app_id, version)
        if found is None:
            raise Conflict(f"The app '{row.app}' has no runtime manifest; publish one: contextbase manifest publish.")
        return found


class _Folder:
    """One composition."""

    def __init__(
        self,
        parts: AppFolders,
        row: AppSession,
        record: WorkspaceRecord,
        published: PublishedManifest,
        plan: RestorePlan,
    ) -> None:
        self._parts = parts
        self._row = row
        self._record = record
        self._published = published
        self._plan = plan
        paths = (inside(path) for path in plan.protected_paths)
        self._protected = frozenset(path for path in paths if path is not None)

    @property
    def _manifest(self) -> RuntimeManifest:
        return self._published.manifest

    async def clean(self) -> None:
        for rule in self._manifest.cleanup_rules:
            path = inside(rule.path)
            if path is not None and not is_protected(path, self._protected):
                await in_thread(clean_up, self._record.path, self._parts.owner, path, rule.action)

    async def put_template(self, before: PublishedManifest | None) -> None:
        layer = await self._template(self._published)
        if not layer:
            raise Conflict(
                f"The template of the manifest {self._manifest.runtime_version} is empty: nothing is below "
                f"{self._manifest.workspace_template_prefix}"
            )
        base = _NOTHING if before is None else await self._template(before)
        standing = await in_thread(standing_at, self._record.path, base.keys() | layer.keys())
        for folder in {folder for path in base for folder in path.folders} & standing.keys():
            if standing[folder].kind is Kind.DIRECTORY:  # the template's own; a file takes its place if it gets empty
                del standing[folder]
        steps = template_steps(self._plan.conflict_policy, self._protected, base=base, standing=standing, layer=layer)
        merged = [step for step in steps if step.action is StepAction.MERGE]
        await self._put([step for step in steps if step.action is not StepAction.MERGE], standing, layer, None)
        for step in merged:
            await self._merge(step.path, base.get(step.path), standing[step.path], layer[step.path])

    async def put_knowledge(self) -> None:
        """It is in the folder as the app has it now, whatever was done to the copies."""
        for entry in self._plan.entries:
            target = inside(entry.to_path)
            if entry.layer is not RestoreLayer.KNOWLEDGE_OVERLAY or target is None:
                continue
            async with self._parts.database.connection() as connection:
                seq = await self._parts.sessions.head_of(connection, self._row.tree)
                place = path_of_key(self._row.app, entry.from_prefix)
                layer = await self._parts.sessions.below(connection, self._row.tree, seq, place)
            standing = await in_thread(standing_below, self._record.path, target)
            protected = frozenset(
                TreePath.stored(path.removeprefix(f"{target}/")) for path in self._protected if path.is_below(target)
            )
            if is_protected(target, self._protected):
                continue
            await self._put(overlay_steps(protected, standing=standing, layer=layer), standing, layer, target)

    async def put_skills(self, names: Collection[str]) -> None:
        """Those that the configuration names, as the app has them now, and no others."""
        layer: dict[TreePath, FolderContent] = {}
        async with self._parts.database.connection() as connection:
            seq = await self._parts.sessions.head_of(connection, self._row.tree)
            for name in sorted(set(names)):
                found = await self._parts.sessions.below(connection, self._row.tree, seq, _SKILLS / name)
                if _SKILL_FILE not in found:
                    raise Conflict(
                        f"The configuration names the skill '{name}', and the app '{self._row.app}' has no file "
                        f"{_SKILLS}/{name}/{_SKILL_FILE}. Put it there, or take the name out."
                    )
                layer |= {TreePath(name) / path: content for path, content in found.items()}
        standing = await in_thread(standing_below, self._record.path, SKILLS)
        await self._put(overlay_steps(frozenset(), standing=standing, layer=layer), standing, layer, SKILLS)

    async def finish(self) -> None:
        targets = [inside(point.target_path) for point in self._manifest.mount_points]
        folders = [target for target in targets if target is not None]
        excluded = (*SyncFilter.of_manifest(self._manifest).left_out, str(SKILLS))
        await in_thread(prepare_folder, self._record.path, self._parts.owner, folders, excluded)
        await self._put_seeds()
        required = [path for text in self._manifest.required_paths if (path := inside(text)) is not None]
        missing = await in_thread(missing_paths, self._record.path, self._parts.owner, required)
        if missing:
            raise Conflict(
                f"The app '{self._row.app}' requires {missing[0]} in the folder of its sessions, and it is not there. "
                f"Its manifest {self._manifest.runtime_version} is wrong, or somebody removed it."
            )

    async def _put_seeds(self) -> None:
        seeds: dict[TreePath, FolderContent] = {}
        always: set[TreePath] = set()
        for seed in self._manifest.seed_files:
            source, target = path_of_key(self._row.app, seed.source), inside(seed.to)
            if target is None:
                continue
            async with self._parts.database.connection() as connection:
                tree, seq = self._row.tree, self._published.tree_seq
                found = await self._parts.sessions.at(connection, tree, seq, [source])
                below = await self._parts.sessions.below(connection, tree, seq, source)
            new = {target: found[source]} if source in found else {target / path: one for path, one in below.items()}
            if not new:
                raise Conflict(f"The seed file {seed.source} of the app '{self._row.app}' is not there.")
            seeds |= new
            always |= set() if seed.if_missing_only else new.keys()
        standing = await in_thread(standing_at, self._record.path, seeds.keys())
        steps = [
            LayerStep(path=path, action=StepAction.WRITE)
            for path, content in sorted(seeds.items())
            if not is_protected(path, self._protected)
            and (path not in standing or (path in always and standing[path] != content))
        ]
        await self._put(steps, standing, seeds, None)

    async def _template(self, published: PublishedManifest) -> dict[TreePath, FolderContent]:
        place = path_of_key(self._row.app, published.manifest.workspace_template_prefix)
        async with self._parts.database.connection() as connection:
            return await self._parts.sessions.below(connection, self._row.tree, published.tree_seq, place)

    async def _put(
        self, steps: Collection[LayerStep], standing: LayerFiles, layer: LayerFiles, below: TreePath | None
    ) -> None:
        place, owner = self._record.path, self._parts.owner
        await in_thread(take_away, place, owner, steps, standing=standing, below=below)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def put(batch: Collection[LayerStep]) -> None:
            async with turns, self._contents([layer[step.path] for step in batch]) as contents:
                await in_thread(
                    put_layer,
                    place,
                    owner,
                    batch,
                    standing=standing,
                    layer=layer,
                    contents=contents,
                    below=below,
                )

        async with asyncio.TaskGroup() as group:
            for batch in _batches(step for step in steps if step.action is StepAction.WRITE):
                group.create_task(put(batch))

    async def _merge(
        self, path: TreePath, base: FolderContent | None, standing: FolderContent, layer: FolderContent
    ) -> None:
        """What both changed. Where they cannot be merged the session's stays."""
        async with self._contents([one for one in (base, layer) if one is not None]) as contents:
            older = None if base is None or base.hash is None else await in_thread(_bytes, contents[base.hash])
            newer = b"" if layer.hash is None else await in_thread(_bytes, contents[layer.hash])
        own = await in_thread(_read, self._record, path, standing.size)
        if ContentHash.of(own) != standing.hash:
            return  # a program went on with it
        merged = await self._parts.merges.settled(
            self._record.principal.id,
            lambda merging: merging(older, newer, own, path=path, policy=MergePolicy()),
        )
        if merged.outcome is MergeOutcome.CONFLICT or merged.content is None or merged.other is not None:
            return
        name, size = ContentHash.of(merged.content), len(merged.content)
        content = FolderContent(kind=Kind.FILE, hash=name, size=size, executable=standing.executable)
        step = LayerStep(path=path, action=StepAction.WRITE)
        await in_thread(
            put_layer,
            self._record.path,
            self._parts.owner,
            [step],
            standing={path: standing},
            layer={path: content},
            contents={name: merged.content},
        )

    @asynccontextmanager
    async def _contents(self, wanted: Collection[FolderContent]) -> AsyncIterator[Mapping[ContentHash, LocalContent]]:
        key = SnapshotKey(project_id=self._row.tree, epoch=self._record.epoch, seq=Seq(0))
        hashes = {content.hash for content in wanted if content.hash is not None}
        async with self._parts.source.contents(key, hashes) as contents:
            yield contents


def _batches(steps: Iterable[LayerStep]) -> Iterator[list[LayerStep]]:
    """Folders are kept together, as far as they fit: a new one is put in place as a whole."""
    batch: list[LayerStep] = []
    for _, in_folder in itertools.groupby(steps, key=lambda step: step.path.parent):
        there = list(in_folder)
        if batch and len(batch) + len(there) > _BATCH:
            yield batch
            batch = []
        batch += there
        while len(batch) > _BATCH:
            yield batch[:_BATCH]
            batch = batch[_BATCH:]
    if batch:
        yield batch


def _context(row: AppSession, published: PublishedManifest) -> RunContext:
    return RunContext(
        app_id=row.app,
        project_name=row.project,
        user_login_name=row.login,
        session_id=str(row.session_id),
        runtime_version=published.manifest.runtime_version,
    )


def _read(record: WorkspaceRecord, path: TreePath, size: int) -> bytes:
    with Folder(record.path) as folder:
        return folder.read(path, most=size + 1)


def _bytes(content: LocalContent) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()
