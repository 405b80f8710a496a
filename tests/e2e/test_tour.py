"""docs/tour.md, run as a reader would."""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.server import ServerProcess, environment

PAGE = Path(__file__).parents[2] / "docs" / "tour.md"


def test_the_tour_runs_and_ends_as_it_says(server: ServerProcess, tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = "set -eu\n" + "\necho '=== next'\n".join(blocks)
    variables = environment(CONTEXTBASE_DATA=str(server.data), HOME=str(tmp_path))
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _, merged, collided, resolved, undone, last = done.stdout.split("=== next\n")
    assert merged.endswith('{\n  "currency": "CHF",\n  "tax": 8\n}\n')
    assert "We launch in June." in collided
    assert "Ben and Carl test." in collided
    assert "plan.md" in collided.rpartition("test.")[2]
    assert resolved.endswith("# Plan\n\nWe launch in July.\n\nAnn leads.\n\nBen and Carl test.\n")
    assert '{\n  "currency": "EUR",\n  "tax": 8\n}\n' in undone
    assert undone.endswith("We launch in July.\n\nAnn leads.\n\nBen and Carl test.\n")
    assert "it had the wrong currency" in last
    assert "agent-two" in last
