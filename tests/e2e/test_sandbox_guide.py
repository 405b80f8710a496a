"""docs/guides/sandboxes.md, run as a reader would."""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.require import require_program, require_root
from tests.support.server import ServerProcess, environment

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "sandboxes.md"


def test_the_guide_runs_and_ends_as_it_says(server: ServerProcess, tmp_path: Path) -> None:
    require_root()
    require_program("bwrap", "apt-get install bubblewrap")
    require_program("curl", "apt-get install curl")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = "set -eu\n" + "\necho '=== next'\n".join(blocks)
    variables = environment(CONTEXTBASE_DATA=str(server.data), HOME=str(tmp_path))
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    _, one, piped, failed, many, limits, lasting = done.stdout.split("=== next\n")
    assert '"beds": 4' in one
    printed = ["agent", "/workspace", "garden.json", "plants.md", "agent"]
    assert [line for line in one.splitlines() if line in printed] == printed  # what it complains of comes when it comes
    assert one.endswith("The workspace is completed, and its folder removed.\nexit code 7\n")
    assert piped.endswith("- beans\n- peas\n")
    assert "exit code 3\n" in failed
    assert "D  plants.md" in failed
    assert "8 of 8 went well." in many
    assert all(f'"bed {number}": "free"' in many for number in range(1, 9))
    assert limits.count("exit code 124\n") == 2
    assert "stopped: memory limit" in limits
    assert "The sandbox is gone. The workspace of agent:visitor is as it was.\n" in lasting
    assert lasting.endswith("The workspace is completed, and its folder removed.\n")
