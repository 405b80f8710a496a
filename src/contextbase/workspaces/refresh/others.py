"""What others have changed since a folder's files were what the project had: read from the database, O(changes)."""

from contextbase.db.database import Connection
from contextbase.ids import TreePath
from contextbase.workspaces.commit_plan import NOTHING
from contextbase.workspaces.place_reads import PlaceReads
from contextbase.workspaces.refresh.plan import OthersChange
from contextbase.workspaces.refresh.target import RefreshTarget
from contextbase.workspaces.repository import WorkspaceRepository

__all__ = ["others_changes"]


async def others_changes(
    connection: Connection, registry: WorkspaceRepository, target: RefreshTarget
) -> list[OthersChange]:
    """Every path that may be seen, and at which the head has something else than the snapshot that the folder's copy is
    based on. Under a new policy also what could not be seen before."""
    record, opened, view, held = target.record, target.opened, target.look.found.view, target.look.held
    reads = PlaceReads(registry, record)
    is_new_policy = opened.policy.version != record.policy_version
    since = view.snapshot.seq if is_new_policy else record.shown
    differences = await reads.differences(connection, since, opened.seq) if since < opened.seq else []
    changes: dict[TreePath, OthersChange] = {}

    def add_unseen(path: TreePath) -> None:
        changes[path] = OthersChange(path=path, base=NOTHING, given=None, shown=None, head=heads[path])

    heads = {path: head for path, _, head in differences}
    for path, given, head in differences:
        if path in held or not target.shows(path):
            continue
        if view.hides(path):
            add_unseen(path)
        else:
            changes[path] = OthersChange(path=path, base=view.snapshot.seq, given=given, shown=given, head=head)
    if is_new_policy:
        uncovered = await reads.nodes_within(connection, opened.seq, view.masked)
        heads |= uncovered
        for path in uncovered:
            if path not in held and path not in changes and target.shows(path):
                add_unseen(path)
    asked = {
        path: one.base
        for path, one in held.items()
        if one.base < opened.seq and (is_new_policy or one.base != since or path in heads) and target.shows(path)
    }
    then = await reads.nodes_at_each(connection, asked)
    now = await reads.nodes_at_each(connection, dict.fromkeys(asked, opened.seq))
    for path, base in asked.items():
        if then.get(path) != now.get(path):
            changes[path] = OthersChange(
                path=path,
                base=base,
                given=then[path][1] if path in then else None,
                shown=held[path].content,
                head=now[path][1] if path in now else None,
                origin=held[path].origin,
            )
    return list(changes.values())
