"""docs/guides/workspaces.md, run as a reader would."""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.require import require_program
from tests.support.server import ServerProcess, environment

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "workspaces.md"


def test_the_guide_runs_and_ends_as_it_says(server: ServerProcess, tmp_path: Path) -> None:
    require_program("curl", "apt-get install curl")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = "set -eu\n" + "\necho '=== next'\n".join(blocks)
    variables = environment(CONTEXTBASE_DATA=str(server.data), HOME=str(tmp_path))
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _, _, run, joined, collided, refused = done.stdout.split("=== next\n")
    assert "A  reports/currency.md\nM  shop.json\n" in run
    assert '+  "currency": "CHF",\n' in run
    assert "agent:accountant" in run.rpartition("folder removed.")[2]
    assert joined == "True\n"
    assert "exit code 1: not everything is in\n# Plan\n\nWe launch in June.\n\nAnn and Ben lead.\n" in collided
    assert "plan.md" in collided.rpartition("lead.")[2]
    assert '"currency": "CHF"' in refused
    assert "you may only read there" in refused
    assert "exit code 1: the folder is kept\n" in refused
    assert refused.endswith("The workspace is completed, and its folder removed.\n")
