"""The web workbench in a real browser: the specs of web/browser, against a server of the test's own."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.agent_clis import AGENT_CLIS, installed
from tests.support.postgres import reachable_folder
from tests.support.require import require_program, unavailable
from tests.support.run_world import remove_sandboxes
from tests.support.server import start_server
from tests.support.workbench_world import WorkbenchWorld, made_workbench_world
from tests.support.workspaces import unmount_all

from contextbase.interfaces.workbench.build import WorkbenchBuild

WEB = Path(__file__).parents[3] / "web"
VITEST = WEB / "node_modules" / "vitest" / "vitest.mjs"
# Those that only look come first: all share one server.
SPECS = sorted(
    (path.name for path in (WEB / "browser").glob("*.spec.ts")), key=lambda name: (name != "pages.spec.ts", name)
)
_SECONDS = 1100


@pytest.fixture(scope="module")
def node() -> str:
    if not VITEST.exists() or WorkbenchBuild().page is None:
        unavailable("the web workbench is not built here: run `make web`")
    wheel = WEB.parent / ".venv" / "node" / "bin" / "node"
    return shutil.which("node") or str(wheel)


@pytest.fixture(scope="module")
def world() -> Iterator[WorkbenchWorld]:
    with reachable_folder() as folder:
        try:
            # With the real agent programs, which the built-in model drives.
            clis = {str(installed(cli.name).parent) for cli in AGENT_CLIS}
            with start_server(folder / "data", CONTEXTBASE_AGENT_FOLDERS=json.dumps(sorted(clis))) as server:
                owner = (server.data / "owner-token").read_text().strip()
                yield made_workbench_world(server.url, owner, server.data)
        finally:
            asyncio.run(remove_sandboxes(folder / "data"))
            unmount_all(folder)


def run_vitest(node: str, *arguments: str, **variables: str) -> None:
    done = subprocess.run(
        [node, str(VITEST), "run", *arguments],
        cwd=WEB,
        env=os.environ | {"NO_COLOR": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workbench_passes_its_own_unit_tests(node: str) -> None:
    run_vitest(node)


@pytest.mark.parametrize("spec", SPECS)
def test_the_workbench_does_in_a_browser_what_the_spec_says(spec: str, node: str, world: WorkbenchWorld) -> None:
    chromium = require_program("chromium", "apt-get install chromium")
    run_vitest(
        node,
        "--config",
        "vitest.browser.config.ts",
        f"browser/{spec}",
        CHROMIUM=chromium,
        WORKBENCH_URL=world.url,
        WORKBENCH_OWNER=world.owner,
        WORKBENCH_READER=world.reader,
        WORKBENCH_DATA=str(world.data),
    )
