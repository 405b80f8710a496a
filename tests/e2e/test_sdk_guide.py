"""docs/guides/sdk.md runs as it stands, and the Python of the README and the guide has no type errors."""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.server import ServerProcess, environment

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "sdk.md"
PAGES = (ROOT / "README.md", GUIDE, ROOT / "docs" / "reference.md")


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_guide_runs_in_one_process(server: ServerProcess, tmp_path: Path) -> None:
    script = tmp_path / "guide.py"
    script.write_text("\n".join(python_blocks(GUIDE)), encoding="utf-8")
    secret = (server.data / "owner-token").read_text().strip()
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        env=environment(CONTEXTBASE_URL=server.url, CONTEXTBASE_TOKEN=secret),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 written\n" in done.stdout
    assert "not_found" in done.stdout


def test_the_python_of_the_docs_passes_a_strict_type_check(tmp_path: Path) -> None:
    scripts = []
    for number, page in enumerate(PAGES):
        blocks = python_blocks(page)
        assert blocks, page
        scripts.append(tmp_path / f"page_{number}.py")
        scripts[-1].write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", *scripts],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
