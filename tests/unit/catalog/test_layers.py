from itertools import product

import pytest
from tests.support.app_examples import MANIFEST

from contextbase.catalog.layers import LayerStep, StepAction, overlay_steps, template_steps
from contextbase.catalog.sync_filter import SyncFilter, SyncPlace
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.wire.manifest import ConflictPolicy, RuntimeManifest
from contextbase.workspaces.model import FolderContent

_PATH = TreePath("a/file.txt")
_NOTHING = frozenset[TreePath]()
KEEP, PREFER, MERGE = ConflictPolicy.KEEP_SESSION, ConflictPolicy.PREFER_REGISTRY, ConflictPolicy.MERGE


def _file(letter: str | None) -> dict[TreePath, FolderContent]:
    if letter is None:
        return {}
    return {_PATH: FolderContent(kind=Kind.FILE, hash=ContentHash.of(letter.encode()))}


def _action(policy: ConflictPolicy, base: str | None, standing: str | None, layer: str | None) -> str | None:
    steps = template_steps(policy, _NOTHING, base=_file(base), standing=_file(standing), layer=_file(layer))
    return steps[0].action if steps else None


@pytest.mark.parametrize("policy", ConflictPolicy)
def test_what_the_session_left_alone_follows_the_template(policy: ConflictPolicy) -> None:
    assert _action(policy, None, None, "new") == "write"
    assert _action(policy, "old", "old", "new") == "write"
    assert _action(policy, "old", "old", None) == "remove"
    assert _action(policy, "old", "old", "old") is None


@pytest.mark.parametrize("policy", ConflictPolicy)
def test_what_the_session_changed_stays_when_the_template_has_nothing_there(policy: ConflictPolicy) -> None:
    assert _action(policy, "old", "mine", None) is None
    assert _action(policy, None, "mine", None) is None


@pytest.mark.parametrize(
    ("base", "standing", "layer", "expected"),
    [
        ("old", "mine", "new", [None, "write", "merge"]),
        (None, "mine", "new", [None, "write", "merge"]),
        ("old", "mine", "old", [None, "write", None]),
        ("old", None, "old", [None, "write", None]),
        ("old", None, "new", [None, "write", None]),
        ("old", "new", "new", [None, None, None]),
    ],
)
def test_the_policy_decides_where_session_and_template_differ(
    base: str | None, standing: str | None, layer: str | None, expected: list[str | None]
) -> None:
    found = [_action(policy, base, standing, layer) for policy in (KEEP, PREFER, MERGE)]
    assert found == expected


def test_protected_paths_are_never_changed_by_a_layer() -> None:
    for base, standing, layer in product((None, "a"), (None, "a", "b"), (None, "b", "c")):
        for policy, protected in product(ConflictPolicy, (_PATH, TreePath("a"))):
            steps = template_steps(
                policy, frozenset({protected}), base=_file(base), standing=_file(standing), layer=_file(layer)
            )
            assert steps == []
            assert overlay_steps(frozenset({protected}), standing=_file(standing), layer=_file(layer)) == []


def test_an_overlay_becomes_what_its_layer_is() -> None:
    def one(text: str) -> FolderContent:
        return FolderContent(kind=Kind.FILE, hash=ContentHash.of(text.encode()))

    a, b, c = TreePath("a"), TreePath("b"), TreePath("c")
    steps = overlay_steps(_NOTHING, standing={a: one("1"), b: one("2")}, layer={b: one("3"), c: one("4")})
    assert steps == [
        LayerStep(path=a, action=StepAction.REMOVE),
        LayerStep(path=b, action=StepAction.WRITE),
        LayerStep(path=c, action=StepAction.WRITE),
    ]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("src/main.py", "session"),
        (".agent_data/claude/x.jsonl", "state"),
        (".agent_data", "state"),
        (".codex/config.toml", "nowhere"),
        (".claude", "nowhere"),
        (".opencode/x", "nowhere"),
        ("src/.claude/x", "session"),
        (".claude-notes/x", "session"),
        (".kb/app/guide.md", "nowhere"),
        (".kb/other.md", "session"),
        (".user-files/notes.md", "user_files"),
        (".user-files-2/notes.md", "session"),
    ],
)
def test_each_file_of_a_workspace_is_stored_in_its_place(path: str, place: str) -> None:
    found = SyncFilter.of_manifest(RuntimeManifest.model_validate(MANIFEST))
    assert found.place_of(TreePath(path)) == SyncPlace(place)
    assert found.left_out == (".claude", ".codex", ".opencode", ".kb/app", ".kb/project", ".user-files")
