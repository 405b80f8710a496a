"""Scripts of requests for the gate: made by hypothesis, spoken in terms of what the writer saw, run on any project."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from hypothesis import strategies as st
from tests.support.gate_world import GateWorld

from contextbase.audit.model import OperatorType
from contextbase.gate.model import Change, ChangeAction, CommitAnswer, CommitRequest, Content, ContentKind
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, Seq, TreePath

__all__ = [
    "BATCHES",
    "EDITS",
    "RULES",
    "Edit",
    "Policies",
    "Sent",
    "Snapshots",
    "Step",
    "moved",
    "plain",
    "play",
    "request_of",
    "set_policies",
    "state_of",
]

AGENTS = 3  # who 0 is the owner
# Few, so that edits meet: files that merge by type, a folder and what is in it, names that numbering makes, a secret.
PATHS = ("a.txt", "a.json", "d", "d/x.txt", "d/y", "box/n.txt", "box/n (1).txt", "secret/s.txt", "keep.md")
PATTERNS = ("**", "d/**", "d/x.txt", "box/**", "secret/**", "*.json", "a.txt")
STRATEGIES = ("auto", "review", "critical", "last-writer", "priority", "union", "ours", "theirs")
LEVELS = ("hidden", "R", "RA", "RW-", "RW")


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One change, before it is known what the writer sees."""

    action: ChangeAction
    path: str
    target: str
    lag: int  # how many commits ago the writer looked
    place: int  # which line or key it edits
    kind: ContentKind
    executable: bool | None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One request; `again` sends an earlier one once more."""

    who: int
    edits: tuple[Edit, ...]
    atomic: bool
    keyed: bool
    again: bool


@dataclass(frozen=True, kw_only=True)
class Policies:
    default: str
    path_rules: tuple[tuple[int | None, str, str], ...]  # agent or everyone, pattern, level
    merge_rules: tuple[tuple[str, str], ...]
    ranks: tuple[int, ...]  # by who


@dataclass(frozen=True, kw_only=True)
class Sent:
    who: int
    request: CommitRequest
    answer: CommitAnswer
    repeats: int | None = None  # which earlier one this is once more


EDITS = st.builds(
    Edit,
    action=st.sampled_from([ChangeAction.WRITE] * 4 + list(ChangeAction)),
    path=st.sampled_from(PATHS),
    target=st.sampled_from(PATHS),
    lag=st.integers(0, 4),
    place=st.integers(0, 4),
    kind=st.sampled_from([ContentKind.FILE] * 5 + [ContentKind.SYMLINK]),
    executable=st.sampled_from([None, None, True, False]),
).filter(lambda edit: edit.action is not ChangeAction.RENAME or edit.path != edit.target)
_STEPS = st.builds(
    Step,
    who=st.integers(0, AGENTS),
    edits=st.lists(EDITS, min_size=1, max_size=3).map(tuple),
    atomic=st.booleans(),
    keyed=st.booleans(),
    again=st.sampled_from([False] * 5 + [True]),
)
BATCHES = st.lists(st.lists(_STEPS, min_size=1, max_size=6), min_size=1, max_size=6)
RULES = st.builds(
    Policies,
    default=st.sampled_from(["RW"] * 3 + list(LEVELS)),
    path_rules=st.lists(
        st.tuples(st.sampled_from([None, *range(1, AGENTS + 1)]), st.sampled_from(PATTERNS), st.sampled_from(LEVELS)),
        max_size=5,
        unique_by=lambda rule: rule[:2],
    ).map(tuple),
    merge_rules=st.lists(
        st.tuples(st.sampled_from(PATTERNS), st.sampled_from(STRATEGIES)), max_size=3, unique_by=lambda rule: rule[0]
    ).map(tuple),
    ranks=st.tuples(*[st.integers(0, 2)] * (AGENTS + 1)),
)


async def set_policies(world: GateWorld, callers: Sequence[Caller], policies: Policies) -> None:
    for who, pattern, level in policies.path_rules:
        await world.rule(pattern, level, None if who is None else callers[who])
    for pattern, strategy in policies.merge_rules:
        await world.merge_rule(pattern, strategy)
    async with world.database.transaction() as connection:
        for caller, rank in zip(callers, policies.ranks, strict=True):
            await connection.execute(
                "INSERT INTO ranks (project_id, principal_id, rank) VALUES ($1, $2, $3)",
                world.project.id, caller.principal.id, rank,
            )  # fmt: skip
        await connection.execute(
            "UPDATE projects SET default_level = $2, policy_version = policy_version + 1 WHERE id = $1",
            world.project.id, policies.default,
        )  # fmt: skip


@dataclass
class Snapshots:
    """What writers saw: contents by path at each seq, read from the project once."""

    world: GateWorld
    known: dict[int, dict[str, bytes | None]] = field(default_factory=dict)

    async def at(self, seq: int) -> dict[str, bytes | None]:
        if seq not in self.known:
            self.known[seq] = await self.world.files(seq)
        return self.known[seq]

    async def head(self) -> int:
        async with self.world.database.connection() as connection:
            head: int = await connection.fetchval("SELECT head FROM projects WHERE id = $1", self.world.project.id)
        return head


async def play(
    world: GateWorld,
    callers: Sequence[Caller],
    batches: Sequence[Sequence[Step]],
    *,
    together: bool,
    follow: Sequence[Sent] | None = None,
) -> list[Sent]:
    """Send every batch at once, or its requests one by one; with `follow`, exactly what was sent there."""
    snapshots = Snapshots(world)
    sent: list[Sent] = []
    for batch in batches:
        head = await snapshots.head()
        requests: list[tuple[int, CommitRequest, int | None]] = []
        for step in batch:
            number = len(sent) + len(requests)
            if follow is not None:
                old = follow[number]
                requests.append((old.who, moved(old.request, world), old.repeats))
                continue
            earlier = [(one.who, one.request) for one in sent] + [(who, request) for who, request, _ in requests]
            keyed = [index for index, (_, request) in enumerate(earlier) if request.key]
            if step.again and keyed:
                requests.append((*earlier[keyed[-1]], keyed[-1]))
            else:
                requests.append((step.who, await request_of(world, snapshots, head, step, number), None))
        if together:
            answers = await asyncio.gather(*(_answer(world, callers[who], request) for who, request, _ in requests))
        else:
            answers = [await _answer(world, callers[who], request) for who, request, _ in requests]
        sent += [
            Sent(who=who, request=request, answer=answer, repeats=repeats)
            for (who, request, repeats), answer in zip(requests, answers, strict=True)
        ]
    return sent


async def _answer(world: GateWorld, caller: Caller, request: CommitRequest) -> CommitAnswer:
    return await world.gate.commit(caller, request, operator_type=OperatorType.AGENT)


def moved(request: CommitRequest, world: GateWorld) -> CommitRequest:
    """The same request to another project."""
    return CommitRequest(
        project_id=world.project.id, changes=request.changes, message=request.message, key=request.key,
        atomic=request.atomic,
    )  # fmt: skip


# A change of a folder is spelt out file by file, which tests/integration/gate/test_commit.py covers: here every change
# has one answer.
_OF_FOLDERS = frozenset({ChangeAction.DELETE, ChangeAction.RENAME})


def _is_folder(path: str, tree: dict[str, bytes | None]) -> bool:
    return any(other.startswith(path + "/") for other in tree)


async def request_of(world: GateWorld, snapshots: Snapshots, head: int, step: Step, number: int) -> CommitRequest:
    changes, places = [], set()
    for edit in step.edits:
        base = max(0, head - edit.lag)
        saw = await snapshots.at(base)
        if edit.action in _OF_FOLDERS and _is_folder(edit.path, saw):
            edit = replace(edit, action=ChangeAction.WRITE)  # noqa: PLW2901 - the edit as it is made
        renames = edit.action is ChangeAction.RENAME
        named = {edit.path, edit.target} if renames else {edit.path}
        if places & named:
            continue
        places |= named
        content = None
        if edit.action is ChangeAction.WRITE or (renames and edit.place == 0):
            content = edited(edit.path, saw.get(edit.path), edit, token=f"r{number}")
        changes.append(
            Change(
                action=edit.action, path=TreePath(edit.path), base=Seq(base), kind=edit.kind,
                target=TreePath(edit.target) if renames else None,
                content=None if content is None else Content(
                    hash=ContentHash.of(content), size=len(content), inline=content
                ),
                executable=edit.executable if content is not None else None,
            )
        )  # fmt: skip
    key = f"key-{number}" if step.keyed else None
    return CommitRequest(project_id=world.project.id, changes=tuple(changes), key=key, atomic=step.atomic)


def edited(path: str, saw: bytes | None, edit: Edit, *, token: str) -> bytes:
    """What the writer saw with one line or key changed; a small file if there was none."""
    if edit.kind is ContentKind.SYMLINK:
        return f"target-{edit.place}".encode()
    if path.endswith(".json"):
        try:
            values = json.loads(saw or b"{}")
        except ValueError:
            values = {}
        if not isinstance(values, dict):
            values = {}
        return json.dumps(values | {f"k{edit.place}": token}, indent=1).encode()
    lines = (saw or b"0\n1\n2\n3\n4\n").decode().splitlines(keepends=True)
    lines = lines or ["\n"]
    lines[edit.place % len(lines)] = f"{token} {edit.place}\n"
    return "".join(lines).encode()


async def state_of(world: GateWorld) -> dict[str, object]:
    """Everything a project holds, with ids replaced by the order in which they appear: two equal runs give equals."""
    tables = {
        "versions": """SELECT seq, path, kind, number, node_id, replaced_seq, content_hash, size, executable, mime,
                              base_number, merged_number, sent_hash
                       FROM versions WHERE project_id = $1 ORDER BY seq, path, kind, number""",
        "sides": """SELECT seq, path, kind, reason, node_id, content_hash, size, executable, mime, base_number
                    FROM side_versions WHERE project_id = $1 ORDER BY seq, path, kind, content_hash""",
        "reviews": """SELECT seq, path, node_id, author_id, state, reason, base_number, ours_number, conflicts
                      FROM review_items WHERE project_id = $1 ORDER BY seq, path, reason, conflicts""",
        "commits": "SELECT seq, principal_id, message FROM commits WHERE project_id = $1 ORDER BY seq",
        "audit": """SELECT number, seq, principal_id, action, path, node_id, base_seq, old_hash, new_hash, strategy,
                           summary FROM audit WHERE chain = $1 AND action = 'commit' ORDER BY number""",
    }
    names: dict[UUID, int] = {}
    found: dict[str, object] = {}
    async with world.database.connection() as connection:
        for table, query in tables.items():
            rows = await connection.fetch(query, world.project.id)
            found[table] = [
                tuple(
                    names.setdefault(value, len(names)) if name == "node_id" and value is not None else value
                    for name, value in row.items()
                )
                for row in rows
            ]
    return found


def plain(answer: CommitAnswer) -> object:
    """An answer without the ids that no two runs share."""
    return answer.seq, answer.committed, [
        (
            change.path, change.status, change.result_path, change.number, change.strategy, change.notes,
            change.side_version_id is None, change.review_id is None, change.conflicts, change.code, change.reason,
        )
        for change in answer.changes
    ]  # fmt: skip
