"""Which rule decides what a caller may do at a path."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextbase.errors import InvalidInput
from contextbase.identity.levels import Level, PathAuthority, PathRule, SubjectKind, check_pattern
from contextbase.ids import PrincipalId, TreePath

ANN, BOB = PrincipalId(UUID(int=1)), PrincipalId(UUID(int=2))
TEAM = UUID(int=3)


def rule(pattern: str, level: str, *, whom: UUID | None = None, kind: SubjectKind | None = None) -> PathRule:
    kind = kind or (SubjectKind.PRINCIPAL if whom else SubjectKind.EVERYONE)
    return PathRule(
        id=uuid4(), subject_kind=kind, subject_id=whom, subject_name="x", pattern=pattern, level=Level.parse(level)
    )


def level(
    path: str, *rules: PathRule, who: PrincipalId = ANN, default: str = "RW", groups: frozenset[UUID] = frozenset()
) -> str:
    authority = PathAuthority(rules=rules, principal_id=who, groups=groups, default=Level.parse(default))
    return str(authority.level(TreePath(path)))


def test_without_a_rule_the_projects_default_decides() -> None:
    assert level("a", default="R") == "R"


def test_the_pattern_with_more_literal_text_decides_whatever_the_order() -> None:
    wide, narrow = rule("docs/**", "R"), rule("docs/secret/**", "hidden")
    assert level("docs/secret/x", wide, narrow) == level("docs/secret/x", narrow, wide) == "hidden"
    assert level("docs/x", wide, narrow) == "R"


def test_on_one_pattern_a_principal_comes_before_a_group_before_everyone() -> None:
    everyone = rule("d/**", "R")
    group = rule("d/**", "RA", whom=TEAM, kind=SubjectKind.GROUP)
    ann = rule("d/**", "RW", whom=ANN)
    rules = (everyone, group, ann)
    team = frozenset({TEAM})
    assert level("d/x", *rules, groups=team) == "RW"
    assert level("d/x", *rules, who=BOB, groups=team) == "RA"
    assert level("d/x", *rules, who=BOB) == "R"


def test_between_equal_rules_the_lower_level_decides() -> None:
    first = rule("d/**", "RW", whom=TEAM, kind=SubjectKind.GROUP)
    second = rule("d/**", "R", whom=UUID(int=4), kind=SubjectKind.GROUP)
    assert level("d/x", first, second, groups=frozenset({TEAM, UUID(int=4)})) == "R"


@pytest.mark.parametrize(
    ("pattern", "matches", "differs"),
    [
        ("docs/**", ["docs", "docs/a", "docs/a/b"], ["docsx", "x/docs"]),
        ("docs/*", ["docs/a"], ["docs", "docs/a/b"]),
        ("**/secret.txt", ["secret.txt", "a/b/secret.txt"], ["secret.txt/x", "asecret.txt"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("**", ["a", "a/b"], []),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_patterns_match_parts_and_folders(pattern: str, matches: list[str], differs: list[str]) -> None:
    hiding = rule(pattern, "hidden")
    assert [level(path, hiding) for path in matches] == ["hidden"] * len(matches)
    assert [level(path, hiding) for path in differs] == ["RW"] * len(differs)


def test_the_owner_cannot_be_locked_out() -> None:
    rules = [rule("**", "hidden"), rule("**", "hidden", whom=ANN)]
    owner = PathAuthority(rules=rules, principal_id=ANN, groups=frozenset(), default=Level.HIDDEN, is_owner=True)
    assert owner.level(TreePath("a")) is Level.READ_WRITE


def test_a_tokens_own_limits_are_never_widened() -> None:
    limited = PathAuthority(
        rules=[], principal_id=ANN, groups=frozenset(), default=Level.READ_WRITE, is_owner=True, may_write=False,
        below=TreePath("docs"),
    )  # fmt: skip
    assert limited.level(TreePath("docs/a")) is Level.READ
    assert limited.level(TreePath("docs")) is Level.READ
    assert limited.level(TreePath("docsx")) is Level.HIDDEN


def test_a_decision_names_its_rule() -> None:
    narrow = rule("docs/**", "R", whom=ANN)
    authority = PathAuthority(rules=[narrow], principal_id=ANN, groups=frozenset(), default=Level.READ_WRITE)
    assert authority.decide(TreePath("docs/a")).rule == narrow
    assert "docs/**" in authority.decide(TreePath("docs/a")).reason


@pytest.mark.parametrize(
    ("then", "now", "is_shown"),
    [
        ("docs/a", "docs/b", True),
        ("docs/a", "vault/a", False),
        ("vault/a", "docs/a", False),
        ("vault/a", "vault/b", False),
    ],
)
def test_a_version_is_shown_if_the_path_then_and_the_path_now_are_both_visible(
    then: str, now: str, is_shown: bool
) -> None:
    hiding = [rule("vault/**", "hidden")]
    authority = PathAuthority(rules=hiding, principal_id=ANN, groups=frozenset(), default=Level.READ)
    assert authority.shows(TreePath(then), TreePath(now)) is is_shown


def test_a_token_for_one_folder_shows_versions_that_were_in_it_and_still_are() -> None:
    limited = PathAuthority(
        rules=[], principal_id=ANN, groups=frozenset(), default=Level.READ_WRITE, is_owner=True, below=TreePath("docs")
    )
    assert limited.shows(TreePath("docs/a"), TreePath("docs/b"))
    assert not limited.shows(TreePath("docs/a"), TreePath("b"))
    assert not limited.shows(TreePath("b"), TreePath("docs/a"))


@pytest.mark.parametrize("pattern", ["", "/", "a/../b", "a//b", "***", "/".join(["**"] * 9), "x" * 1025, "a\nb"])
def test_a_pattern_that_could_match_no_path_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        check_pattern(pattern)


@pytest.mark.parametrize("spelling", ["hidden", "R", "RA", "RW-", "RW"])
def test_levels_are_written_as_they_are_read(spelling: str) -> None:
    assert str(Level.parse(spelling)) == spelling


@pytest.mark.parametrize("may_write", [True, False])
@pytest.mark.parametrize("below", [None, TreePath("docs")])
@pytest.mark.parametrize("is_owner", [True, False])
def test_the_level_is_that_of_the_decision(may_write: bool, below: TreePath | None, is_owner: bool) -> None:
    rules = [rule("docs/**", "RA"), rule("docs/secret", "hidden")]
    authority = PathAuthority(
        rules=rules, principal_id=BOB, groups=frozenset(), default=Level.READ_WRITE, is_owner=is_owner,
        may_write=may_write, below=below,
    )  # fmt: skip
    for path in map(TreePath, ("docs", "docs/a", "docs/secret", "elsewhere")):
        assert authority.level(path) is authority.decide(path).level


def test_an_intricate_pattern_is_soon_asked_about_a_path_that_nearly_matches_it() -> None:
    # Trying all ways in which the stars could share the name would not end.
    assert level("d/" + "a" * 255, rule("**/" + "*a" * 60 + "*b/**", "hidden")) == "RW"


_NAMES = st.sampled_from(["a", "b", "ab", "*", "**", "a*"])
_RULES = st.lists(
    st.builds(
        lambda names, hidden: rule("/".join(names), "hidden" if hidden else "R"),
        st.lists(_NAMES, min_size=1, max_size=3).filter(lambda names: "***" not in "".join(names)),
        st.booleans(),
    ),
    max_size=4,
)
_PATHS = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=3).map("/".join)


@given(rules=_RULES, default=st.sampled_from(["hidden", "R"]), folder=_PATHS, rest=_PATHS, below=st.none() | _PATHS)
def test_nothing_can_be_seen_in_a_folder_that_shows_nothing(
    rules: list[PathRule], default: str, folder: str, rest: str, below: str | None
) -> None:
    authority = PathAuthority(
        rules=rules,
        principal_id=ANN,
        groups=frozenset(),
        default=Level.parse(default),
        below=None if below is None else TreePath(below),
    )
    if authority.shows_nothing_in(TreePath(folder)):
        assert not authority.sees(TreePath(folder))
        assert not authority.sees(TreePath(f"{folder}/{rest}"))


def test_a_folder_hidden_with_all_in_it_shows_nothing_unless_a_narrower_rule_shows_something() -> None:
    def shows_nothing(folder: str, *rules: PathRule, default: str = "RW") -> bool:
        authority = PathAuthority(rules=rules, principal_id=ANN, groups=frozenset(), default=Level.parse(default))
        return authority.shows_nothing_in(TreePath(folder))

    hidden = rule("vault/**", "hidden")
    assert shows_nothing("vault", hidden)
    assert shows_nothing("vault/deep/down", hidden, rule("*", "RW"), rule("docs/**", "R"))
    assert not shows_nothing("vault", hidden, rule("vault/open/**", "R"))
    assert shows_nothing("vault/shut", hidden, rule("vault/open/**", "R"))
    assert not shows_nothing("vault", hidden, rule("vault/*/open", "R"))
    assert not shows_nothing("vaults", hidden)
    assert shows_nothing("docs", default="hidden")
