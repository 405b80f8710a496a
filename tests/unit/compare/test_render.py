import json

from contextbase.compare import Side, compare, render_changes, render_unified, to_dict


def test_a_patch_names_both_paths_modes_and_lines() -> None:
    old, new = (
        Side.of(b"def f():\n\n    a\n    b\n    c\n    d"),
        Side.of(b"def f():\n\n    a\n    b\n    c\n    D\n", executable=True),
    )
    assert render_unified(compare(old, new, path="b c.py", old_path="a.py")) == (
        "diff --git a/a.py b/b c.py\n"
        "old mode 100644\n"
        "new mode 100755\n"
        "rename from a.py\n"
        "rename to b c.py\n"
        "--- a/a.py\n"
        "+++ b/b c.py\t\n"
        "@@ -3,4 +3,4 @@ def f():\n"
        "     a\n"
        "     b\n"
        "     c\n"
        "-    d\n"
        "\\ No newline at end of file\n"
        "+    D\n"
    )


def test_binaries_and_folders_are_named_and_notes_stand_below() -> None:
    binary = render_unified(compare(Side.of(b"\0"), Side.of(b"\0\0"), path="a.png"))
    assert "Binary files a/a.png and b/a.png differ: 1 bytes, image/png, 6e34" in binary
    assert render_unified(compare(None, Side.folder(), path="a")) == "Folder added: a\n"
    broken = render_unified(compare(Side.of(b"{}\n"), Side.of(b"{\n"), path="a.json"))
    assert broken.splitlines()[-1].startswith("# Compared as text: it is not valid JSON")


def test_bytes_that_are_not_text_do_not_hinder() -> None:
    diff = compare(Side.of(b"caf\xe9\n"), Side.of(b"caf\xe8\n"), path="a.txt")
    assert "-caf\ufffd\n" in render_unified(diff)
    assert json.loads(json.dumps(to_dict(diff)))["hunks"][0]["lines"] == ["-caf\ufffd\n", "+caf\ufffd\n"]


def test_changed_values_are_listed_one_a_line() -> None:
    old = '{"a": 1, "gone": {"x":\n 1}, "l": [{"id": "p"}, {"id": "q"}]}'
    new = '{"a": 2, "l": [{"id": "q"}, {"id": "p"}], "long": "' + "x" * 300 + '"}'
    lines = render_changes(compare(Side.of(old.encode()), Side.of(new.encode()), path="a.json")).splitlines()
    assert lines[:3] == ["~ /a: 1 -> 2", '- /gone: {"x": 1}', "> /l/1 moved from /l/0"]
    assert lines[3].startswith('+ /long: "xxx')
    assert lines[3].endswith("x…")


def test_cells_are_listed_with_the_lines_of_their_source() -> None:
    def notebook(source: str, outputs: list[str]) -> Side:
        cell = {"id": "a", "cell_type": "code", "source": source, "outputs": outputs}
        return Side.of(json.dumps({"cells": [cell]}).encode())

    shown = render_changes(compare(notebook("x\ny", []), notebook("x\nz", ["out"]), path="a.ipynb"))
    assert shown.splitlines()[:3] == ["~ code cell a: outputs changed", "    @@ -1,2 +1,2 @@", "     x"]


def test_a_dict_says_everything_json_can() -> None:
    diff = compare(Side.of(b'{"a": 1}\n'), Side.of(b'{"a": 2}\n', executable=True), path="a.json")
    found = json.loads(json.dumps(to_dict(diff)))
    assert (found["path"], found["status"], found["kind"]) == ("a.json", "changed", "structure")
    assert found["new"]["executable"]
    assert found["hunks"][0]["header"] == "@@ -1 +1 @@"
    change = {"kind": "changed", "old_pointer": "/a", "new_pointer": "/a", "old": "1", "new": "2"}
    assert found["changes"] == [change]
