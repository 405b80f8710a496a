"""Scripts of requests for the gate: made by hypothesis, spoken in terms of what the writer saw, run on any project."""

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from tests.support.gate_world import GateWorld

from contextbase.errors import InvalidInput
from contextbase.gate.model import ChangeAction, CommitAnswer, CommitRequest, Content, ContentKind, RequestedChange
from contextbase.identity.levels import Level
from contextbase.identity.model import Caller, PrincipalName
from contextbase.identity.policies import Subject
from contextbase.ids import ContentHash, Seq, TreePath

__all__ = [
    "EDITS",
    "ROUNDS",
    "RULES",
    "Edit",
    "Groups",
    "Members",
    "Policies",
    "Round",
    "Sent",
    "Snapshots",
    "Step",
    "answer_of",
    "moved",
    "plain",
    "play",
    "request_of",
    "set_policies",
    "state_of",
]

AGENTS = 3  # who 0 is the owner
GROUPS = ("readers", "writers")
# Few, so that edits meet: files that merge by type, a folder and what is in it, names that numbering makes, a secret.
PATHS = ("a.txt", "a.json", "d", "d/x.txt", "d/y", "box/n.txt", "box/n (1).txt", "secret/s.txt", "keep.md")
FOLDERS = ("d", "box", "secret")
FOLDER_TARGETS = (*FOLDERS, "e", "d/inner", "box/n.txt")
PATTERNS = ("**", "d/**", "d/x.txt", "box/**", "secret/**", "*.json", "a.txt")
STRATEGIES = ("auto", "review", "critical", "last-writer", "priority", "union", "ours", "theirs")
LEVELS = ("hidden", "R", "RA", "RW-", "RW")
Members = Mapping[str, frozenset[int]]
"""Who is in each group."""


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
class Round:
    """Somebody joins or leaves groups; then requests are made, all at once or one by one."""

    moves: tuple[tuple[int, str], ...]  # who is in the group leaves it, who is not joins
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class Policies:
    default: str
    path_rules: tuple[tuple[int | str | None, str, str], ...]  # agent, group or everyone; pattern; level
    merge_rules: tuple[tuple[str, str], ...]
    ranks: tuple[int, ...]  # by who


@dataclass(frozen=True, kw_only=True)
class Sent:
    who: int
    request: CommitRequest
    answer: CommitAnswer | None  # None: not a valid request, once its folders are spelt out
    members: Members
    repeats: int | None = None  # which earlier one this is once more


_LAGS = st.sampled_from([0, 0, 0, 1, 2, 3, 4])
_EDITS_OF_ENTRIES = st.builds(
    Edit,
    action=st.sampled_from([ChangeAction.WRITE] * 4 + list(ChangeAction)),
    path=st.sampled_from(PATHS),
    target=st.sampled_from(PATHS),
    lag=_LAGS,
    place=st.integers(0, 4),
    kind=st.sampled_from([ContentKind.FILE] * 5 + [ContentKind.SYMLINK]),
    executable=st.sampled_from([None, None, True, False]),
).filter(lambda edit: edit.action is not ChangeAction.RENAME or edit.path != edit.target)
_EDITS_OF_FOLDERS = st.builds(
    Edit,
    action=st.sampled_from([ChangeAction.DELETE, ChangeAction.RENAME]),
    path=st.sampled_from(FOLDERS),
    target=st.sampled_from(FOLDER_TARGETS),
    lag=_LAGS,
    place=st.integers(0, 4),
    kind=st.just(ContentKind.FILE),
    executable=st.none(),
).filter(lambda edit: edit.path != edit.target)
EDITS = st.one_of(_EDITS_OF_ENTRIES, _EDITS_OF_ENTRIES, _EDITS_OF_FOLDERS)
_STEPS = st.builds(
    Step,
    who=st.sampled_from([0, *range(1, AGENTS + 1), *range(1, AGENTS + 1)]),
    edits=st.lists(EDITS, min_size=1, max_size=3).map(tuple),
    atomic=st.sampled_from([False, False, True]),
    keyed=st.booleans(),
    again=st.sampled_from([False] * 5 + [True]),
)
# The owner puts something everywhere first: most edits then meet what is there.
_SEEDING = Round(
    moves=((1, "readers"), (2, "readers"), (2, "writers")),
    steps=(
        Step(
            who=0,
            edits=tuple(
                Edit(
                    action=ChangeAction.WRITE, path=path, target="", lag=0, place=0, kind=ContentKind.FILE,
                    executable=None,
                )
                for path in PATHS if path != "d"
            ),
            atomic=False, keyed=False, again=False,
        ),
    ),
)  # fmt: skip
ROUNDS = st.lists(
    st.builds(
        Round,
        moves=st.lists(st.tuples(st.integers(1, AGENTS), st.sampled_from(GROUPS)), max_size=2, unique=True).map(tuple),
        steps=st.lists(_STEPS, min_size=1, max_size=6).map(tuple),
    ),
    min_size=1,
    max_size=6,
).map(lambda rounds: [_SEEDING, *rounds])


def _rules_for(
    subjects: Sequence[int | str | None], patterns: Sequence[str], levels: Sequence[str] = LEVELS, **sizes: int
) -> st.SearchStrategy[Any]:
    rules = st.tuples(st.sampled_from(subjects), st.sampled_from(patterns), st.sampled_from(levels))
    return st.lists(rules, unique_by=lambda rule: rule[:2], **sizes)


RULES = st.builds(
    Policies,
    default=st.sampled_from(["RW"] * 8 + list(LEVELS)),
    path_rules=st.tuples(
        _rules_for((None, *range(1, AGENTS + 1)), PATTERNS, max_size=4),
        _rules_for(GROUPS, ("**", "d/**", "box/**", "secret/**"), min_size=1, max_size=3),
        # Something hidden in a folder that is not.
        _rules_for((None, *GROUPS), ("d/y", "secret/s.txt"), ("hidden",), max_size=2),
    ).map(lambda lists: tuple(chain(*lists))),
    merge_rules=st.lists(
        st.tuples(st.sampled_from(PATTERNS), st.sampled_from(STRATEGIES)), max_size=3, unique_by=lambda rule: rule[0]
    ).map(tuple),
    ranks=st.tuples(*[st.integers(0, 2)] * (AGENTS + 1)),
)


@dataclass
class Groups:
    """The groups of one world, at first empty. All projects share them, so each world has its own."""

    world: GateWorld
    callers: Sequence[Caller]
    members: dict[str, frozenset[int]] = field(default_factory=lambda: dict.fromkeys(GROUPS, frozenset()))

    @classmethod
    async def made(cls, world: GateWorld, callers: Sequence[Caller]) -> "Groups":
        groups = cls(world, callers)
        for group in GROUPS:
            await world.policies.create_group(world.owner, groups.named(group))
        return groups

    def named(self, group: str) -> str:
        return f"{group}-{self.world.project.name}"

    async def move(self, who: int, group: str) -> None:
        members, policies = self.members[group], self.world.policies
        change = policies.remove_member if who in members else policies.add_member
        principal = self.callers[who].principal
        name = PrincipalName(kind=principal.kind, name=principal.name)
        await change(self.world.owner, self.named(group), name)
        self.members[group] = members ^ {who}


async def set_policies(world: GateWorld, callers: Sequence[Caller], policies: Policies) -> Groups:
    groups = await Groups.made(world, callers)
    for who, pattern, level in policies.path_rules:
        if isinstance(who, str):
            await world.policies.put_rule(
                world.owner, world.project.id, subject=Subject.parse(f"group:{groups.named(who)}"), pattern=pattern,
                level=Level.parse(level),
            )  # fmt: skip
        else:
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
    return groups


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
    groups: Groups,
    rounds: Sequence[Round],
    *,
    together: bool,
    follow: Sequence[Sent] | None = None,
    servers: Sequence[GateWorld] = (),
) -> list[Sent]:
    """Send every round's requests at once, or one by one; with `follow`, exactly what was sent there; to these servers
    of the world's project, if there are any, one request each in turn."""
    callers = groups.callers
    doors = itertools.cycle(servers or [world])
    snapshots = Snapshots(world)
    sent: list[Sent] = []
    for played in rounds:
        for who, group in played.moves:
            await groups.move(who, group)
        head = await snapshots.head()
        requests: list[tuple[int, CommitRequest, int | None]] = []
        for step in played.steps:
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
            answers = await asyncio.gather(
                *(answer_of(next(doors), callers[who], request) for who, request, _ in requests)
            )
        else:
            answers = [await answer_of(next(doors), callers[who], request) for who, request, _ in requests]
        sent += [
            Sent(who=who, request=request, answer=answer, members=dict(groups.members), repeats=repeats)
            for (who, request, repeats), answer in zip(requests, answers, strict=True)
        ]
    return sent


async def answer_of(world: GateWorld, caller: Caller, request: CommitRequest) -> CommitAnswer | None:
    try:
        return await world.gate.commit(caller, request)
    except InvalidInput:
        return None


def moved(request: CommitRequest, world: GateWorld) -> CommitRequest:
    """The same request to another project."""
    return CommitRequest(
        project_id=world.project.id, changes=request.changes, message=request.message, key=request.key,
        atomic=request.atomic,
    )  # fmt: skip


async def request_of(world: GateWorld, snapshots: Snapshots, head: int, step: Step, number: int) -> CommitRequest:
    changes, places = [], set()
    for edit in step.edits:
        base = max(0, head - edit.lag)
        saw = await snapshots.at(base)
        renames = edit.action is ChangeAction.RENAME
        named = {edit.path, edit.target} if renames else {edit.path}
        if places & named:
            continue
        places |= named
        content = None
        if edit.action is ChangeAction.WRITE or (renames and edit.place == 0):
            content = edited(edit.path, saw.get(edit.path), edit, token=f"r{number}")
        changes.append(
            RequestedChange(
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


def plain(answer: CommitAnswer | None) -> object:
    """An answer without the ids that no two runs share."""
    return answer and (answer.seq, answer.committed, [
        (
            change.path, change.status, change.result_path, change.number, change.strategy, change.notes,
            change.side_version_id is None, change.review_id is None, change.conflicts, change.code, change.reason,
        )
        for change in answer.changes
    ])  # fmt: skip
