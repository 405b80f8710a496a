import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "merging.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_page_on_merging_run(example: str) -> None:
    exec(compile(example, str(PAGE), "exec"), {})  # noqa: S102 - it is our own page


def test_the_markers_on_the_page_are_the_ones_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(example for example in EXAMPLES if "render_markers" in example)
    exec(compile(example, str(PAGE), "exec"), {})  # noqa: S102 - it is our own page
    assert capsys.readouterr().out.strip() in PAGE.read_text(encoding="utf-8")
