import json

import pytest

from contextbase.merge import MergePolicy, PathMergeRule, Strategy, fold, merge


@pytest.mark.parametrize("path", ["list.json", "list.crdt.json"])
def test_a_hundred_agents_appending_to_one_list_keep_all_hundred_in_order(path: str) -> None:
    base = json.dumps({"list": ["start"]}, indent=2).encode()
    versions = [json.dumps({"list": ["start", f"agent {number}"]}, indent=2).encode() for number in range(100)]
    folded = fold(base, base, versions, path=path)
    assert folded.content is not None
    assert json.loads(folded.content)["list"] == ["start", *(f"agent {number}" for number in range(100))]
    assert not folded.unmerged


def test_it_gives_what_merging_one_by_one_gives() -> None:
    base = b'{"a": 0, "b": 0, "c": 0}\n'
    versions = [
        b'{"a": 1, "b": 0, "c": 0}\n',
        b'{"a": 0, "b": 0, "c": 3}\n',
        b'{"a": 2, "b": 0, "c": 0}\n',
        b'{"a": 0, "b": 5, "c": 0, "d": 4}\n',
    ]
    folded = fold(base, base, versions, path="a.json")
    head = base
    refused = []
    for position, version in enumerate(versions):
        answer = merge(base, head, version, path="a.json")
        if answer.content is None:
            refused.append(position)
        else:
            head = answer.content
    assert folded.content == head == b'{"a": 1, "b": 5, "c": 3, "d": 4}\n'
    assert list(folded.unmerged) == refused == [2]
    assert folded.unmerged[2].conflicts[0].place.at == "/a"


def test_versions_that_a_policy_sets_aside_are_named() -> None:
    policy = MergePolicy(rules=(PathMergeRule(pattern="*", strategy=Strategy.PRIORITY),), ours_rank=1)
    folded = fold(b"a", b"head", [b"x", b"y"], path="a.txt", policy=policy)
    assert (folded.content, folded.superseded) == (b"head", (0, 1))


def test_nothing_to_fold_leaves_the_head() -> None:
    assert fold(b"a", b"b", [], path="a.txt").content == b"b"
