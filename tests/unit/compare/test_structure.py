from contextbase.compare import Side, compare, pointer


def changes(old: str, new: str, path: str) -> list[tuple[str, str | None, str | None, str | None, str | None]]:
    """Kind, old and new pointer, old and new text."""
    diff = compare(Side.of(old.encode()), Side.of(new.encode()), path=path)
    assert not diff.notes
    return [
        (
            change.kind.value,
            None if change.old_path is None else pointer(change.old_path),
            None if change.new_path is None else pointer(change.new_path),
            change.old and change.old.text,
            change.new and change.new.text,
        )
        for change in diff.changes
    ]


def test_json_values_are_shown_as_they_are_written() -> None:
    old = '{"a/b": 1.50, "gone": [1,  2], "same": "\\u00e9"}'
    new = '{"a/b": 1.5, "same": "é", "new": {"x":  null}}'
    assert changes(old, new, "a.json") == [
        ("changed", "/a~1b", "/a~1b", "1.50", "1.5"),
        ("removed", "/gone", None, "[1,  2]", None),
        ("added", None, "/new", None, '{"x":  null}'),
    ]


def test_elements_with_an_id_keep_it_when_others_come_and_go() -> None:
    old = '[{"id": "a", "v": 1}, {"id": "b", "v": 1}, {"id": "c", "v": 1}]'
    new = '[{"id": "c", "v": 2}, {"id": "new", "v": 1}, {"id": "b", "v": 1}]'
    assert changes(old, new, "a.json") == [
        ("removed", "/0", None, '{"id": "a", "v": 1}', None),
        ("changed", "/2/v", "/0/v", "1", "2"),
        ("added", None, "/1", None, '{"id": "new", "v": 1}'),
        ("moved", "/1", "/2", None, None),
    ]


def test_other_elements_are_told_apart_by_their_value() -> None:
    assert changes('["a", "b", "c"]', '["b", "x", "c"]', "a.json") == [
        ("removed", "/0", None, '"a"', None),
        ("added", None, "/1", None, '"x"'),
    ]
    assert changes('[{"v": 1}, {"w": 1}]', '[{"v": 1}, {"w": 2}]', "a.json") == [("changed", "/1/w", "/1/w", "1", "2")]


def test_a_value_that_becomes_another_kind_of_value_is_changed_as_a_whole() -> None:
    assert changes('{"a": {"b": 1}}', '{"a": [1]}', "a.json") == [("changed", "/a", "/a", '{"b": 1}', "[1]")]
    assert changes("1", "true", "a.json") == [("changed", "", "", "1", "true")]


def test_null_and_missing_are_different() -> None:
    assert changes('{"a": null}', "{}", "a.json") == [("removed", "/a", None, "null", None)]


def test_yaml_values_are_shown_as_they_are_written() -> None:
    old = "a: 'x'  # why\nlist:\n  - name: one\n    v: 1\n  - name: two\nsame: y\ntext: |\n  one\n"
    new = "# new\na: x\nlist:\n  - name: two\n  - name: one\n    v: 0x1\nsame: 'y'\ntext: |\n  two\n"
    new += "b:\n  c: {d: 1}\n  e:\n  - f\n\n# end\n"
    assert changes(old, new, "a.yaml") == [
        ("moved", "/list/0", "/list/1", None, None),
        ("changed", "/list/0/v", "/list/1/v", "1", "0x1"),
        ("changed", "/text", "/text", "|\n  one\n", "|\n  two\n"),
        ("added", None, "/b", None, "c: {d: 1}\n  e:\n  - f"),
    ]


def test_a_quoted_word_is_not_the_bare_one_that_means_something_else() -> None:
    assert changes("a: true\nb: 'no'\n", "a: 'true'\nb: no\n", "a.yaml") == [
        ("changed", "/a", "/a", "true", "'true'"),
        ("changed", "/b", "/b", "'no'", "no"),
    ]


def test_aliases_and_tags_are_values_and_documents_a_list() -> None:
    old = "a: &x {b: 1}\nc: *x\n---\nd: !t e\n"
    new = "a: &x {b: 2}\nc: *x\n---\nd: !u e\n"
    assert changes(old, new, "a.yaml") == [
        ("changed", "/0/a/b", "/0/a/b", "1", "2"),
        ("changed", "/1/d", "/1/d", "!t e", "!u e"),
    ]


def test_toml_tables_are_put_together_from_where_they_stand() -> None:
    old = 'a.b = 1\n[tool.x]\nv = "1"\n[[bin]]\nname = "one"\n[[bin]]\nname = "two"\n[bin.deps]\nz = 1\n'
    new = "a = {b = 2}\n[tool]\nx.v = '1'\n[[bin]]\nname = \"two\"\ndeps = {z = 0x1}\n[tool.y]\nd = 1979-05-27\n"
    assert changes(old, new, "a.toml") == [
        ("changed", "/a/b", "/a/b", "1", "2"),
        ("added", None, "/tool/y", None, "[tool.y]\nd = 1979-05-27"),
        ("removed", "/bin/0", None, '[[bin]]\nname = "one"', None),
        ("changed", "/bin/1/deps/z", "/bin/0/deps/z", "1", "0x1"),
    ]
