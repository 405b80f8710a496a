"""Path policies: who may do what where. One model, asked by every way in and every way out. Pure.

A rule gives a subject (a principal, a group, or everyone) a level on the paths its pattern matches. Among the rules
that apply to a caller and a path, the most specific decides: first by pattern (more literal text, fewer wildcards),
then by subject (principal before group before everyone); between equals the lower level. Without a rule the project's
default does. The owner always has RW.
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from contextbase.errors import InvalidInput
from contextbase.identity.model import Action, Caller, Principal
from contextbase.ids import PrincipalId, TreePath
from contextbase.wildcards import expression_of

__all__ = [
    "Level",
    "LevelDecision",
    "PathAuthority",
    "PathRule",
    "SubjectKind",
    "check_pattern",
    "matches",
    "place_of",
]

_LONGEST_PATTERN: Final = 1024
_DEEP: Final = "/**"
_NOBODY: Final = PrincipalId(UUID(int=0))


class Level(IntEnum):
    """Each level allows what the one before does, and more."""

    HIDDEN = 0  # does not exist, as far as the caller can tell
    READ = 1
    READ_ADD = 2  # may make new files, not change or delete what is there
    READ_WRITE_KEEP = 3  # may change, not delete
    READ_WRITE = 4

    @classmethod
    def parse(cls, text: str) -> "Level":
        try:
            return _OF_SPELLING[text]
        except KeyError:
            raise InvalidInput(f"{text[:40]!r} is not a level: {', '.join(_OF_SPELLING)}.") from None

    def __str__(self) -> str:
        return _SPELLING[self]


_SPELLING: Final = {
    Level.HIDDEN: "hidden",
    Level.READ: "R",
    Level.READ_ADD: "RA",
    Level.READ_WRITE_KEEP: "RW-",
    Level.READ_WRITE: "RW",
}
_OF_SPELLING: Final = {spelling: level for level, spelling in _SPELLING.items()}


class SubjectKind(StrEnum):
    PRINCIPAL = "principal"
    GROUP = "group"
    EVERYONE = "everyone"


_SUBJECT_RANK: Final = {SubjectKind.PRINCIPAL: 2, SubjectKind.GROUP: 1, SubjectKind.EVERYONE: 0}


@dataclass(frozen=True, kw_only=True, slots=True)
class PathRule:
    """`*` matches within a part of a path, `**` across parts. `docs/**` is the folder itself and all in it."""

    id: UUID
    subject_kind: SubjectKind
    subject_id: UUID | None  # None: everyone
    subject_name: str
    pattern: str
    level: Level

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "PathRule":
        """Of a row of `path_rules` with its subject's name, read as columns or as JSON (where ids are text)."""
        principal, group = row["principal_id"], row["group_id"]
        subject = principal or group
        return cls(
            id=UUID(str(row["id"])),
            subject_kind=(SubjectKind.PRINCIPAL if principal else SubjectKind.GROUP if group else SubjectKind.EVERYONE),
            subject_id=UUID(str(subject)) if subject else None,
            subject_name=row["subject_name"],
            pattern=row["pattern"],
            level=Level.parse(row["level"]),
        )

    @property
    def is_deep(self) -> bool:
        """Whether it is about a folder with all in it."""
        return self.pattern.endswith(_DEEP)

    @property
    def specificity(self) -> tuple[int, int, int, int]:
        """Higher is more specific: literal characters, then fewer `**`, then fewer `*`, then the subject."""
        return *_narrowness(self.pattern), _SUBJECT_RANK[self.subject_kind]


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelDecision:
    """A level and what decided it."""

    level: Level
    rule: PathRule | None
    reason: str


class PathAuthority:
    """What one caller may do, path by path, under one version of a project's policy."""

    def __init__(
        self,
        *,
        rules: Iterable[PathRule],
        principal_id: PrincipalId,
        groups: frozenset[UUID],
        default: Level,
        is_owner: bool = False,
        may_write: bool = True,
        below: TreePath | None = None,
        limit: "PathAuthority | None" = None,
    ) -> None:
        """`may_write` and `below` are the grant's own limits, which no rule widens. `limit` is what another may do, on
        whose behalf the caller acts: on each path the lower of both levels holds."""
        self._limit = limit
        self._is_owner = is_owner
        self._default = default
        self._may_write = may_write
        self._below = below
        applying = (rule for rule in rules if _applies(rule, principal_id, groups))
        # Most specific first; between equals the lower level.
        self._rules = sorted(applying, key=lambda rule: (*(-part for part in rule.specificity), rule.level))
        hiding = [] if is_owner else [rule for rule in self._rules if rule.level is Level.HIDDEN]
        self._hiding = tuple(place_of(rule.pattern) for rule in hiding)
        self._hides_files = not all(rule.is_deep for rule in hiding)
        levels = [default, *(rule.level for rule in self._rules)]
        sees_all = below is None and (is_owner or min(levels) > Level.HIDDEN)
        self.sees_everything: bool = sees_all and (limit is None or limit.sees_everything)
        shown = () if is_owner else tuple((rule.pattern, rule.level > Level.HIDDEN) for rule in self._rules)
        sight: Hashable = () if sees_all else (below, is_owner, default > Level.HIDDEN, shown)
        self.sight: Hashable = sight if limit is None or limit.sees_everything else (sight, limit.sight)
        """Equal for callers who see the same paths, so that what is made for one can serve all of them."""

    @staticmethod
    def key_of(caller: Caller) -> Hashable:
        """Equal for callers who may do the same under one policy, while they are in the same groups."""
        principal, grant, limiting = caller.principal, caller.grant, caller.limited_by
        whose = None if limiting is None else (limiting.id, limiting.is_owner)
        return principal.id, principal.is_owner, Action.WRITE in grant.actions, grant.path_prefix, whose

    @classmethod
    def of_caller(
        cls,
        caller: Caller,
        *,
        rules: Iterable[PathRule],
        groups: Mapping[PrincipalId, frozenset[UUID]],
        default: Level,
    ) -> "PathAuthority":
        """What a caller may do by its grant, and no more than whoever limits it. `groups`: of both, by principal."""
        rules = tuple(rules)
        limit = None
        if (limiting := caller.limited_by) is not None:
            limit = cls.of_principal(
                limiting, rules=rules, groups=groups.get(limiting.id, frozenset()), default=default
            )
        return cls(
            rules=rules,
            principal_id=caller.principal.id,
            groups=groups.get(caller.principal.id, frozenset()),
            default=default,
            is_owner=caller.principal.is_owner,
            may_write=Action.WRITE in caller.grant.actions,
            below=caller.grant.path_prefix,
            limit=limit,
        )

    @classmethod
    def of_principal(
        cls, principal: Principal, *, rules: Iterable[PathRule], groups: frozenset[UUID], default: Level
    ) -> "PathAuthority":
        """What a principal may do with a token that limits nothing."""
        return cls(rules=rules, principal_id=principal.id, groups=groups, default=default, is_owner=principal.is_owner)

    @classmethod
    def of_folder(cls, folder: TreePath) -> "PathAuthority":
        """What a token for one folder allows a principal whom no rule limits."""
        return cls(rules=(), principal_id=_NOBODY, groups=frozenset(), default=Level.READ_WRITE, below=folder)

    def level(self, path: TreePath) -> Level:
        """As `decide`, without the words."""
        if not self._is_within(path):
            return Level.HIDDEN
        if self._is_owner:
            level = Level.READ_WRITE
        else:
            rule = self._rule_for(path)
            level = self._default if rule is None else rule.level
        level = level if self._may_write else min(level, Level.READ)
        return level if self._limit is None else min(level, self._limit.level(path))

    def sees(self, path: TreePath) -> bool:
        """Whether the caller may know of one path. Ask `shows` about a version of a file."""
        return self.level(path) > Level.HIDDEN

    def shows(self, path_then: TreePath, path_now: TreePath) -> bool:
        """Whether the caller may know of a version that stood at `path_then`, of a node that is at `path_now` today.

        Both must be visible. Without the check of the path now, moving a file into a hidden folder would leave its
        earlier contents readable in the history. Without the check of the path then, moving a file out of a hidden
        folder would publish the name of that folder and everything that the file held while it was there."""
        return self.shows_all((path_then, path_now))

    def shows_all(self, places: Iterable[TreePath]) -> bool:
        """As `shows`, for something that names more than two paths: one hidden path hides all of it."""
        return self.sees_everything or all(map(self.sees, places))

    def hides_below(self, path: TreePath) -> bool:
        """Whether a rule hides something in particular below the path, be it there or not. A file in the place of that
        folder would tell which."""
        if self._limit is not None and self._limit.hides_below(path):
            return True
        return any(place.startswith(f"{path}/") for place in self._hiding)

    def hides_above(self, path: TreePath) -> bool:
        """Whether a rule hides a file, be it there or not, where something at the path needs a folder. A rule that
        hides a folder with all in it does not count: below it, somebody gave the path on purpose."""
        if self._limit is not None and self._limit.hides_above(path):
            return True
        if not self._hides_files:
            return False
        rules = map(self._rule_for, path.folders)
        return any(rule is not None and rule.level is Level.HIDDEN and not rule.is_deep for rule in rules)

    def shows_nothing_in(self, folder: TreePath) -> bool:
        """Whether a folder, with all that may be in it, is hidden: then there is no need to look, and how long it takes
        tells nothing. False where one would have to look."""
        if self._limit is not None and self._limit.shows_nothing_in(folder):
            return True
        below = self._below
        if below is not None and not self._is_within(folder) and not below.is_below(folder):
            return True
        if self._is_owner:
            return False
        for rule in self._rules:  # the most specific first: what hides all of the folder decides over the rest
            if rule.level > Level.HIDDEN:
                if _reaches(rule.pattern, folder):
                    return False
            elif rule.is_deep and matches(rule.pattern, folder):
                return True
        return self._default is Level.HIDDEN

    def may_read_message(self, places: Iterable[TreePath]) -> bool:
        """Whether a commit's message is for this caller: it speaks of all that the commit did, and so nothing of that
        may be hidden. `places`: where each change stands, where it stood before, and where its node is now."""
        return self.shows_all(places)

    def decide(self, path: TreePath) -> LevelDecision:
        """The level on a path, and why."""
        if not self._is_within(path):
            return LevelDecision(level=Level.HIDDEN, rule=None, reason=f"the grant is limited to {self._below}")
        decision = self._by_rules(path)
        if not self._may_write and decision.level > Level.READ:
            decision = LevelDecision(level=Level.READ, rule=decision.rule, reason="the grant does not allow 'write'")
        limit = None if self._limit is None else self._limit.decide(path)
        return decision if limit is None or limit.level >= decision.level else limit

    def _by_rules(self, path: TreePath) -> LevelDecision:
        if self._is_owner:
            return LevelDecision(level=Level.READ_WRITE, rule=None, reason="the owner may do everything")
        rule = self._rule_for(path)
        if rule is None:
            return LevelDecision(level=self._default, rule=None, reason="no rule matches; it is the project's default")
        whom = f"{rule.subject_kind} {rule.subject_name}" if rule.subject_id else "everyone"
        reason = f"the rule for {whom} on {rule.pattern} is the most specific"
        return LevelDecision(level=rule.level, rule=rule, reason=reason)

    def _rule_for(self, path: TreePath) -> PathRule | None:
        return next((rule for rule in self._rules if matches(rule.pattern, path)), None)

    def _is_within(self, path: TreePath) -> bool:
        return self._below is None or path == self._below or path.is_below(self._below)


def _reaches(pattern: str, folder: TreePath) -> bool:
    """Whether it may match the folder or something in it."""
    place = place_of(pattern)
    return not place or place == folder or place.startswith(f"{folder}/") or folder.is_below(place)


def check_pattern(pattern: str) -> str:
    """A pattern as it is stored: relative, like a path, with wildcards."""
    plain = pattern.strip("/")
    if not plain or len(plain.encode()) > _LONGEST_PATTERN:
        raise InvalidInput(f"A pattern has 1 to {_LONGEST_PATTERN} bytes.")
    if plain.count("**") > 8 or "***" in plain:
        raise InvalidInput("A pattern has at most 8 '**', and never '***'.")
    TreePath(re.sub(r"[*?]+", "x", plain))
    return plain


def matches(pattern: str, path: TreePath) -> bool:
    return _expression(pattern).fullmatch(path) is not None


def _applies(rule: PathRule, principal_id: PrincipalId, groups: frozenset[UUID]) -> bool:
    if rule.subject_kind is SubjectKind.EVERYONE:
        return True
    if rule.subject_kind is SubjectKind.GROUP:
        return rule.subject_id in groups
    return rule.subject_id == principal_id


@lru_cache(maxsize=4096)
def place_of(pattern: str) -> str:
    """The path that everything the pattern matches is at or below: what comes before its first wildcard."""
    literal = re.split(r"[*?]", pattern, maxsplit=1)[0]
    return literal.rstrip("/") if literal == pattern or literal.endswith("/") else literal.rpartition("/")[0]


@lru_cache(maxsize=4096)
def _narrowness(pattern: str) -> tuple[int, int, int]:
    wild = pattern.count("**")
    single = len(re.findall(r"(?<!\*)\*(?!\*)|\?", pattern))
    literal = len(re.sub(r"[*?]", "", pattern).rstrip("/"))
    return literal, -wild, -single


@lru_cache(maxsize=4096)
def _expression(pattern: str) -> re.Pattern[str]:
    with_all_in_it = "(?:/.*)?" if pattern.endswith(_DEEP) else ""
    return re.compile(expression_of(pattern.removesuffix(_DEEP)) + with_all_in_it, re.DOTALL)
