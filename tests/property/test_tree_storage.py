"""The tree repository against a plain model: lists of dicts, one per snapshot."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.tree_writer import TEST_AUDIT_KEY, TreeWriter

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.ids import ContentHash, NodeId, Seq, TreePath
from contextbase.storage.blobs.memory import MemoryBlobStore
from contextbase.storage.fsck import Fsck
from contextbase.storage.model import Kind, NewVersion
from contextbase.storage.tree import TreeRepository

# Few, so that operations meet; and names that sort around '/', so that a folder's contents are not next to its name.
PATHS = st.sampled_from(["a", "a/a", "a/a/b", "a/b", "a-", "a0", "b", "b/a-/c", "é"])
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), PATHS, st.sampled_from([b"one", b"two", b""])),
    st.tuples(st.just("mkdir"), PATHS, st.just(b"")),
    st.tuples(st.just("link"), PATHS, st.just(b"target")),
    st.tuples(st.just("delete"), PATHS, st.just(b"")),
    st.tuples(st.just("rename"), PATHS, PATHS),
)
COMMITS = st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=10)
KINDS = {"write": Kind.FILE, "mkdir": Kind.DIRECTORY, "link": Kind.SYMLINK}

State = tuple[NodeId, Kind, bytes | None]


@dataclass
class Model:
    """The tree after each commit: path -> (node, kind, content)."""

    snapshots: list[dict[str, State]] = field(default_factory=lambda: [{}])

    @property
    def head(self) -> dict[str, State]:
        return self.snapshots[-1]

    def allows(self, path: str, tree: dict[str, State]) -> bool:
        """Nothing may lie below a file, and no file may lie where a folder is."""
        above = [path[:index] for index, letter in enumerate(path) if letter == "/"]
        if any(parent in tree and tree[parent][1] is not Kind.DIRECTORY for parent in above):
            return False
        return not any(other.startswith(path + "/") for other in tree)


def apply(model: Model, writer: TreeWriter, operations: list[tuple[str, str, str | bytes]]) -> list[NewVersion]:
    tree, versions, touched = dict(model.head), [], set()
    for name, path, argument in operations:
        node = tree[path][0] if path in tree else None
        if node in touched:
            continue  # one version per node and commit
        if name == "delete":
            if node is None:
                continue
            del tree[path]
            version = writer.delete(path)
        elif name == "rename":
            target = str(argument)
            rest = {other: state for other, state in tree.items() if other != path}
            if node is None or target in tree or not model.allows(target, rest):
                continue
            _, kind, content = tree.pop(path)
            tree[target] = (node, kind, content)
            content_hash = None if content is None else ContentHash.of(content)
            version = writer.rename(path, target, content_hash, size=len(content or b""), kind=kind)
        else:
            kind = KINDS[name]
            if not model.allows(path, tree) or (path in tree and tree[path][1] is not kind):
                continue
            content = None if kind is Kind.DIRECTORY else bytes(argument)  # type: ignore[arg-type]  # str is for rename
            content_hash = None if content is None else ContentHash.of(content)
            version = writer.write(path, content_hash, size=len(content or b""), kind=kind)
            tree[path] = (version.node_id, kind, content)
        versions.append(version)
        touched.add(version.node_id)
    model.snapshots.append(tree)
    return versions


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=COMMITS, batch=st.booleans())
async def test_every_snapshot_folder_diff_and_chain_is_what_the_model_says(
    database: Database, commits: list[list[tuple[str, str, str | bytes]]], batch: bool
) -> None:
    store = MemoryBlobStore()
    await _store_contents(database, store)
    writer, model = await TreeWriter.start(database), Model()
    changes = [apply(model, writer, operations) for operations in commits]
    if batch:
        await writer.commit(*changes)
    else:
        for versions in changes:
            await writer.commit(versions)

    tree = TreeRepository()
    async with database.connection() as connection:
        for seq, snapshot in enumerate(model.snapshots):
            assert await _whole_tree(connection, tree, writer, Seq(seq)) == snapshot
            await _check_folders(connection, tree, writer, Seq(seq), snapshot)
            for older in range(seq):
                await _check_diff(connection, tree, writer, model, old=older, new=seq)
        for node_id, number in writer.numbers.items():
            chain = await tree.chain(connection, writer.project.id, node_id)
            assert [version.number for version in chain] == list(range(number, 0, -1))
            assert [version.seq for version in chain] == sorted({version.seq for version in chain}, reverse=True)
    fsck = Fsck(database=database, store=store, audit=AuditRepository(TEST_AUDIT_KEY))
    assert [step.problem for step in [step async for step in fsck.run()] if step.problem] == []


async def _store_contents(database: Database, store: MemoryBlobStore) -> None:
    async with database.connection() as connection:
        for content in (b"one", b"two", b"", b"target"):
            blob = await store.put(_once(content))
            await connection.execute(
                "INSERT INTO blobs (hash, size) VALUES ($1, $2) ON CONFLICT DO NOTHING", blob.hash, blob.size
            )


async def _once(content: bytes):  # type: ignore[no-untyped-def]  # an async generator of bytes
    yield content


async def _whole_tree(connection: Connection, tree: TreeRepository, writer: TreeWriter, seq: Seq) -> dict[str, State]:
    contents = {ContentHash.of(content): content for content in (b"one", b"two", b"", b"target")}
    found, after = {}, None
    while True:
        page = await tree.page(connection, writer.project.id, seq, after=after, limit=2)
        for version in page:
            assert str(version.path) not in found
            content = None if version.content_hash is None else contents[version.content_hash]
            found[str(version.path)] = (version.node_id, version.kind, content)
        if len(page) < 2:
            return found
        after = page[-1].path


async def _check_folders(
    connection: Connection, tree: TreeRepository, writer: TreeWriter, seq: Seq, snapshot: dict[str, State]
) -> None:
    folders = {""} | {path[:index] for path in snapshot for index, letter in enumerate(path) if letter == "/"}
    for folder in folders:
        prefix = folder + "/" if folder else ""
        expected = {}
        for path, (_, kind, _) in snapshot.items():
            if path.startswith(prefix) and path != folder:
                name, _, deeper = path[len(prefix) :].partition("/")
                expected.setdefault(name, Kind.DIRECTORY if deeper else kind)
                if not deeper:
                    expected[name] = kind
        listed, start = [], None
        while True:
            page = await tree.children(
                connection, writer.project.id, seq, folder=TreePath(folder) if folder else None, start=start, limit=2
            )
            listed.extend(page.children)
            start = page.next_from
            if start is None:
                break
        assert len(listed) == len(expected)
        assert {child.name: child.kind for child in listed} == expected


async def _check_diff(
    connection: Connection, tree: TreeRepository, writer: TreeWriter, model: Model, *, old: int, new: int
) -> None:
    def by_node(snapshot: dict[str, State]) -> dict[NodeId, tuple[str, ContentHash | None]]:
        return {
            node: (path, None if content is None else ContentHash.of(content))
            for path, (node, _, content) in snapshot.items()
        }

    before, after = by_node(model.snapshots[old]), by_node(model.snapshots[new])
    found: dict[NodeId, tuple[object, object]] = {}
    cursor = None
    while True:
        page = await tree.diff(connection, writer.project.id, Seq(old), Seq(new), after=cursor, limit=2)
        for change in page.changes:
            either = change.before or change.after
            assert either is not None
            found[either.node_id] = tuple(
                None if version is None else (str(version.path), version.content_hash)
                for version in (change.before, change.after)
            )  # type: ignore[assignment]  # two of them
        cursor = page.next_after
        if cursor is None:
            break
    expected = {node: (before.get(node), after.get(node)) for node in before.keys() | after.keys()}
    really_different = {node: pair for node, pair in expected.items() if pair[0] != pair[1]}
    # A node written twice with the same content has another version, but nothing that differs.
    assert {node: pair for node, pair in found.items() if pair[0] != pair[1]} == really_different
