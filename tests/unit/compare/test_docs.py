import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "comparing.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_page_on_comparing_run(example: str) -> None:
    exec(compile(example, str(PAGE), "exec"), {})  # noqa: S102 - it is our own page


def test_the_changes_on_the_page_are_the_ones_shown(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(example for example in EXAMPLES if "render_changes" in example)
    exec(compile(example, str(PAGE), "exec"), {})  # noqa: S102 - it is our own page
    assert capsys.readouterr().out.strip() in PAGE.read_text(encoding="utf-8")
