"""What must hold after any run of requests: C1 to C5 and C7, checked from the rows and the answers alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import asyncpg
from tests.support.gate_script import Policies, Sent
from tests.support.gate_world import GateWorld

from contextbase.gate.model import (
    ChangeAction,
    ChangeAnswer,
    ChangeStatus,
    CommitAnswer,
    CommitRequest,
    RequestedChange,
)
from contextbase.ids import ContentHash, Seq, TreePath

__all__ = ["Ledger"]

HIDDEN, READ, READ_ADD, READ_WRITE_KEEP, READ_WRITE = range(5)
_LEVELS = ("hidden", "R", "RA", "RW-", "RW")
Row = asyncpg.Record


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All rows of a project."""

    world: GateWorld
    policies: Policies
    head: int
    commits: list[Row]
    versions: dict[tuple[object, int], Row]  # by node and number
    sides: dict[object, Row]
    reviews: dict[object, Row]
    blobs: Mapping[bytes, bytes]

    @classmethod
    async def of(cls, world: GateWorld, policies: Policies) -> "Ledger":
        project = world.project.id
        async with world.database.connection() as connection:
            versions = await connection.fetch("SELECT * FROM versions WHERE project_id = $1 ORDER BY seq", project)
            sides = await connection.fetch("SELECT * FROM side_versions WHERE project_id = $1", project)
            reviews = await connection.fetch("SELECT * FROM review_items WHERE project_id = $1", project)
            blobs = await connection.fetch("SELECT hash, content FROM blob_contents")
            return cls(
                world=world,
                policies=policies,
                head=await connection.fetchval("SELECT head FROM projects WHERE id = $1", project),
                commits=await connection.fetch("SELECT * FROM commits WHERE project_id = $1 ORDER BY seq", project),
                versions={(row["node_id"], row["number"]): row for row in versions},
                sides={row["id"]: row for row in sides},
                reviews={row["id"]: row for row in reviews},
                blobs={row["hash"]: row["content"] for row in blobs},
            )

    async def check(self, sent: Sequence[Sent]) -> None:
        self.check_dense()
        await self.check_replay()
        committed: list[int] = []
        for number, one in enumerate(sent):
            first = None if one.repeats is None else sent[one.repeats].answer
            if first is not None:
                assert one.answer == self.seen(one, first), f"C7: request {number} happened twice"
                continue
            if one.answer is None:
                heads = range(max(change.base for change in one.request.changes), self.head + 1)
                assert any(_meet(self.spelt_out(one, Seq(head))) for head in heads), "a valid request was refused"
                continue
            changes = self.spelt_out(one, Seq(one.answer.seq - one.answer.committed))
            assert not _meet(changes), "two changes about one place were accepted"
            self.check_allowed(one, one.answer)
            self.check_only_named_places_change(one.answer, changes)
            for change, answer in zip(changes, one.answer.changes, strict=True):
                self.check_accounted(one.request, one.answer, change, answer)
            committed += [one.answer.seq] if one.answer.committed else []
        assert committed == list(range(1, self.head + 1)), "C2: each commit is one request's, in order"

    def seen(self, one: Sent, first: CommitAnswer) -> CommitAnswer:
        """What a request that is sent again is told: of places that its sender may not see any more, only what became
        of the change."""

        def told(change: ChangeAnswer) -> ChangeAnswer:
            places = [place for place in (change.path, change.result_path) if place is not None]
            if all(self.level(one, place) > HIDDEN for place in places):
                return change
            return ChangeAnswer(path=change.path, status=change.status, code=change.code, reason=change.reason)

        return replace(first, changes=tuple(map(told, first.changes)))

    def spelt_out(self, one: Sent, head: Seq) -> list[RequestedChange]:
        """A change of a folder is one of all that its writer could see in it, and of the folder if it is an entry. What
        was moved out of its sight since, up to the head that the request met, is not in it."""
        named = {change.path for change in one.request.changes}
        spelt: list[RequestedChange] = []
        for change in one.request.changes:
            inside: list[str] = []
            if change.action in (ChangeAction.DELETE, ChangeAction.RENAME) and self.level(one, change.path) > HIDDEN:
                below = self._below(change.path, change.base)
                inside = [path for path in below if self._is_seen(one, path, change.base, head)]
            if not inside or self._is_seen(one, change.path, change.base, head):
                spelt.append(change)
            for path in inside:
                if path in named:
                    continue
                target = None if change.target is None else TreePath(change.target + path.removeprefix(change.path))
                content = change.content if target is None else None
                spelt.append(replace(change, path=TreePath(path), target=target, content=content))
        return spelt

    def check_dense(self) -> None:
        assert [row["seq"] for row in self.commits] == list(range(1, self.head + 1)), "C2"

    async def check_replay(self) -> None:
        """C3: putting the commits on top of each other gives each snapshot."""
        tree: dict[object, Row] = {}
        for seq in range(self.head + 1):
            for row in self._of_commit(seq):
                tree[row["node_id"]] = row
            replayed = {
                row["path"]: None if row["content_hash"] is None else self.blobs[row["content_hash"]]
                for row in tree.values()
                if row["kind"] != "deleted"
            }
            assert replayed == await self.world.files(seq), f"C3: snapshot {seq}"
            paths = sorted(replayed)
            files = {row["path"] for row in tree.values() if row["kind"] in ("file", "symlink")}
            assert not [path for path in paths if any(path.startswith(f"{file}/") for file in files)], "C3: in a file"

    def check_allowed(self, one: Sent, answer: CommitAnswer) -> None:
        """C5: each version that the commit adds is within its writer's level, where it was and where it is."""
        if one.who == 0 or not answer.committed:
            return
        for row in self._of_commit(answer.seq):
            level = self.level(one, row["path"])
            before = self.versions.get((row["node_id"], row["number"] - 1))
            if before is None or before["kind"] == "deleted":
                assert level >= READ_ADD, "C5: added"
            elif row["kind"] == "deleted":
                assert level == READ_WRITE, "C5: deleted"
            elif row["path"] == before["path"]:
                assert level >= READ_WRITE_KEEP, "C5: changed"
            else:
                assert (self.level(one, before["path"]), level >= READ_ADD) == (READ_WRITE, True), "C5: renamed"
        for change in answer.changes:
            if change.result_path is not None:
                assert self.level(one, change.result_path) > HIDDEN, "C5: a hidden path was named"

    def check_only_named_places_change(self, answer: CommitAnswer, changes: Sequence[RequestedChange]) -> None:
        if not answer.committed:
            return
        named = {place for change in changes for place in (change.path, change.target)}
        named |= {settled.result_path for settled in answer.changes}
        for row in self._of_commit(answer.seq):
            before = self.versions.get((row["node_id"], row["number"] - 1))
            assert row["path"] in named
            assert before is None or before["path"] in named

    def check_accounted(
        self, request: CommitRequest, commit: CommitAnswer, change: RequestedChange, answer: ChangeAnswer
    ) -> None:
        """C1: what the writer sent is where the answer says."""
        status = answer.status
        assert answer.path == change.path
        if status is ChangeStatus.REFUSED:
            assert answer.code in ("forbidden", "not_found", "conflict", "atomic")
            assert request.atomic or answer.code in ("forbidden", "not_found")
            return
        wanted = None if change.content is None else change.content.hash
        if status in (ChangeStatus.SUPERSEDED, ChangeStatus.IN_REVIEW):
            side = self.sides[answer.side_version_id]
            assert side["seq"] == commit.seq
            assert wanted in (None, side["content_hash"]), "C1: the side version has another content"
            if change.action is ChangeAction.DELETE:
                assert side["kind"] == "deleted"
            if status is ChangeStatus.IN_REVIEW:
                item = self.reviews[answer.review_id]
                assert (item["state"], item["side_version_id"]) == ("open", answer.side_version_id)
            return
        if status is ChangeStatus.UNCHANGED:
            self._check_unchanged(commit.seq, change, answer)
            return
        row = self.versions[answer.node_id, answer.number]
        assert row["seq"] == commit.seq
        assert row["path"] == (answer.result_path or change.path)
        if change.action is ChangeAction.DELETE:
            assert row["kind"] == "deleted"
        elif change.action is ChangeAction.MAKE_DIRECTORY:
            assert row["kind"] == "directory"
        elif wanted is not None:
            self._check_content(change, answer, row, wanted)

    def _check_unchanged(self, seq: Seq, change: RequestedChange, answer: ChangeAnswer) -> None:
        now = self._at(change.target or answer.result_path or change.path, seq)
        base = self._at(change.path, change.base)
        if change.action is ChangeAction.DELETE:
            assert now is None or now["node_id"] != (base and base["node_id"]), "C1: a deletion was not made"
        elif change.content is not None:
            assert now is not None
            as_it_was = base is not None and base["content_hash"] == change.content.hash
            if now["content_hash"] != change.content.hash and not as_it_was:
                self._check_lines(change, base, now)

    def _check_content(self, change: RequestedChange, answer: ChangeAnswer, row: Row, wanted: ContentHash) -> None:
        if answer.status is ChangeStatus.WRITTEN:
            assert row["content_hash"] == wanted
            return
        base = self._at(change.path, change.base)
        same_as_base = base is not None and base["content_hash"] == wanted
        assert row["content_hash"] == wanted or row["sent_hash"] == wanted or same_as_base
        if answer.side_version_id is not None:
            assert self.sides[answer.side_version_id]["content_hash"] == wanted
        elif row["kind"] == "file" and row["content_hash"] != wanted:
            self._check_lines(change, base, row)

    def _check_lines(self, change: RequestedChange, base: Row | None, result: Row) -> None:
        """C1, C4: what the writer added is in the result, and the result has nothing that nobody wrote."""
        assert change.content is not None
        sent, made = self._lines(change.content.hash), self._lines(result["content_hash"])
        saw = self._lines(base["content_hash"]) if base is not None else set()
        assert sent - saw <= made, "C1: lines of the writer are not in the result"
        before = self.versions.get((result["node_id"], result["number"] - 1))
        ours = self._lines(before["content_hash"]) if before is not None else set()
        assert made <= sent | saw | ours | self._lines(result["content_hash"] if before is None else None), "C4"

    def _lines(self, content_hash: bytes | None) -> set[bytes]:
        content = b"" if content_hash is None else self.blobs[content_hash]
        return {line.strip().rstrip(b",") for line in content.splitlines()}

    def _at(self, path: str, seq: Seq) -> Row | None:
        for row in self.versions.values():
            ends = row["replaced_seq"]
            if row["path"] == path and row["kind"] != "deleted" and row["seq"] <= seq and (ends is None or ends > seq):
                return row
        return None

    def _is_seen(self, one: Sent, path: str, base: Seq, head: Seq) -> bool:
        """Whether there was something that the sender may see, where it stood in its base and where it was since."""
        row = self._at(path, base)
        if row is None or self.level(one, path) <= HIDDEN:
            return False
        number = max(
            n for (node, n), version in self.versions.items() if node == row["node_id"] and version["seq"] <= head
        )
        return self.level(one, self.versions[row["node_id"], number]["path"]) > HIDDEN

    def _below(self, folder: str, seq: Seq) -> list[str]:
        paths = {row["path"] for row in self.versions.values() if row["path"].startswith(f"{folder}/")}
        return sorted(path for path in paths if self._at(path, seq) is not None)

    def _of_commit(self, seq: int) -> list[Row]:
        return [row for row in self.versions.values() if row["seq"] == seq]

    def level(self, one: Sent, path: str) -> int:
        """What a request's sender might do at a path, by the rules read a second way."""
        if one.who == 0:
            return READ_WRITE
        matching = [
            (
                len(pattern.replace("*", "").rstrip("/")),
                -pattern.count("**"),
                (subject is not None) + isinstance(subject, int),  # principal before group before everyone
                -_LEVELS.index(level),
            )
            for subject, pattern, level in self.policies.path_rules
            if (subject in (None, one.who) or one.who in one.members.get(str(subject), ())) and _matches(pattern, path)
        ]
        return -max(matching)[3] if matching else _LEVELS.index(self.policies.default)


def _meet(changes: Sequence[RequestedChange]) -> bool:
    """Whether two changes are about one place."""
    places = [place for change in changes for place in (change.path, change.target) if place is not None]
    return len(set(places)) < len(places)


def _matches(pattern: str, path: str) -> bool:
    if pattern == "**":
        return True
    if pattern.endswith("/**"):
        return f"{path}/".startswith(pattern.removesuffix("**"))
    if pattern.startswith("*"):
        return path.endswith(pattern[1:]) and "/" not in path
    return path == pattern
