"""Commands without a sandbox: only for who says so."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from contextbase.errors import MachineProblem, Misconfigured
from contextbase.sandbox.model import HOME, WORKSPACE, SandboxId, SandboxSpec
from contextbase.sandbox.plain import PlainDriver, _OpenGround
from contextbase.workspaces.model import Owner


def test_nobody_gets_it_without_saying_so(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="use bubblewrap or Docker"):
        PlainDriver(tmp_path, owner=Owner(uid=61184, gid=61184), node="test")


async def test_agents_never_run_as_root(tmp_path: Path) -> None:
    driver = PlainDriver(tmp_path, owner=Owner(uid=0, gid=0), node="test", isolation_not_wanted=True)
    with pytest.raises(MachineProblem, match="never run as root"):
        await driver.limits_by()


def test_the_callers_paths_stand_for_real_ones(tmp_path: Path) -> None:
    ground, own = _OpenGround(Path("/real/home")), tmp_path / "own"
    own.mkdir()
    spec = SandboxSpec(id=SandboxId(int=1), folder=tmp_path)
    places = {
        str(WORKSPACE / "a"): f"{tmp_path}/a",
        "b": f"{tmp_path}/b",
        str(HOME / ".x"): "/real/home/.x",
        "/opt/c": "/opt/c",
    }
    assert {inside: ground.path(spec, PurePosixPath(inside)) for inside in places} == places
    assert ground.path(replace(spec, home=own), HOME / ".x") == f"{own}/.x"
