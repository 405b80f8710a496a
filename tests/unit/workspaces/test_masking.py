import pytest

from contextbase.ids import TreePath
from contextbase.workspaces.masks import masked_paths

NODES = [
    "readme",
    "docs/a",
    "docs/b.key",
    "secret/x",
    "secret/deep/y",
    "keys/one.key",
    "empty",
    "mixed/in/a",
    "mixed/in/b.key",
]


@pytest.mark.parametrize(
    ("hidden", "masked"),
    [
        (set(), set()),
        ({"docs/b.key"}, {"docs/b.key"}),
        ({"secret/x", "secret/deep/y"}, {"secret"}),
        ({"secret/deep/y"}, {"secret/deep"}),
        ({"keys/one.key", "mixed/in/b.key"}, {"keys", "mixed/in/b.key"}),
        ({"empty"}, {"empty"}),
        (set(NODES), {"readme", "docs", "secret", "keys", "empty", "mixed"}),
    ],
)
def test_the_topmost_paths_in_which_nothing_may_be_seen_are_masked(hidden: set[str], masked: set[str]) -> None:
    for nodes in (NODES, NODES[::-1]):
        assert masked_paths(map(TreePath, nodes), lambda path: path not in hidden) == masked


def test_a_hidden_node_above_a_file_that_may_be_seen_stays_as_a_folder() -> None:
    assert masked_paths([TreePath("a"), TreePath("a/b")], lambda path: path == "a/b") == frozenset()
