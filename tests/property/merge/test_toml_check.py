"""What the pattern of plain TOML lets pass is TOML."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from contextbase.merge.budget import Budget
from contextbase.merge.formats.toml_check import is_valid_toml

names = st.sampled_from(["a", "b", "a.b", "a.c", "b.c.d", "'cfg(x.y)'.a", "0", "a-b"])
scalars = st.sampled_from(
    [
        "1",
        "-0",
        "01",
        "1_0",
        "true",
        '""',
        "''",
        '"a"',
        '"a',
        "'a\\'",
        '"\\n"',
        '"""a"""',
        '"""\na"',
        "1.5",
        "é",
        '"é"',
        "\x01",
    ]
)
arrays = st.lists(scalars, max_size=3).flatmap(
    lambda items: st.sampled_from([", ", ",\n # x\n", ",,"]).map(lambda comma: f"[{comma.join(items)}]")
)
pairs = st.lists(st.builds("{} = {}".format, names, scalars | arrays), max_size=3)
values = scalars | arrays | pairs.map(lambda inner: f"{{ {', '.join(inner)} }}")
lines = st.one_of(
    st.builds("{} = {}".format, names, values),
    st.builds("[{}]".format, names),
    st.builds("[[{}]]".format, names),
    st.sampled_from(["", "# note", "  a = 1 # note", "[a]]", "[[a]", "a.'b' = 1", "a = 1 b = 2", "\ta = 1"]),
)


@given(st.lists(lines, max_size=6).map("\n".join))
def test_the_check_says_what_the_standard_library_says(text: str) -> None:
    try:
        tomllib.loads(text + "\n")
        is_valid = True
    except tomllib.TOMLDecodeError:
        is_valid = False
    assert is_valid_toml(text + "\n", Budget(10)) == is_valid
