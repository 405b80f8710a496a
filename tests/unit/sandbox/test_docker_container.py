"""How a sandbox is described to the engine."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from contextbase.errors import InvalidInput
from contextbase.limits import ResourceLimits
from contextbase.sandbox.docker.container import Container, Mode, configuration, size_limited
from contextbase.sandbox.docker.engine import Engine
from contextbase.sandbox.model import SandboxId, SandboxSpec, SandboxState
from contextbase.workspaces.model import Owner

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SPEC = SandboxSpec(id=SandboxId(uuid4().hex), folder=Path("/some/folder"), labels={"session": "s1"})


def configured(spec: SandboxSpec, mode: Mode = Mode.FOLDER, *, processors: int = 2) -> dict[str, Any]:
    owner = Owner(uid=4711, gid=4712)
    return configuration(spec, mode=mode, node="n", owner=owner, image="i", now=NOW, processors=processors)


def test_what_the_labels_say_is_what_was_asked_for() -> None:
    limits = ResourceLimits(max_memory=None, max_cpu=12.5, max_disk=7)
    labels = configured(replace(SPEC, limits=limits))["Labels"]
    container = Container.listed("name", labels, "exited")
    assert container.limits == limits
    assert container.info.labels == {"session": "s1"}
    assert (container.info.id, container.info.created_at) == (SPEC.id, NOW)
    assert (container.info.state, container.info.holds_files) == (SandboxState.STOPPED, False)


def test_more_processors_than_there_are_is_all_of_them() -> None:
    generous = replace(SPEC, limits=ResourceLimits(max_cpu=6400))
    assert configured(generous, processors=2)["HostConfig"]["NanoCpus"] == 2 * 10**9


def test_no_limit_is_none_for_the_engine_either() -> None:
    free = ResourceLimits(max_memory=None, max_cpu=None, max_processes=None, max_disk=None)
    host = configured(replace(SPEC, limits=free))["HostConfig"]
    assert not {"Memory", "MemorySwap", "NanoCpus", "PidsLimit"} & host.keys()
    assert {limit["Name"] for limit in host["Ulimits"]} == {"core", "nofile"}


def test_our_own_processes_do_not_count_as_the_agents() -> None:
    host = configured(replace(SPEC, limits=ResourceLimits(max_processes=10)))["HostConfig"]
    assert host["PidsLimit"] == 12


def test_a_read_only_folder_is_bound_read_only() -> None:
    for is_read_only in (False, True):
        (mount,) = configured(replace(SPEC, is_read_only=is_read_only))["HostConfig"]["Mounts"]
        assert (mount["Source"], mount["ReadOnly"]) == ("/some/folder", is_read_only)


def test_a_size_limit_changes_nothing_else() -> None:
    plain = configured(replace(SPEC, folder=None), Mode.CONTAINER)
    limited = size_limited(plain, 1 << 30)
    assert limited["HostConfig"].pop("StorageOpt") == {"size": str(1 << 30)}
    assert limited == plain
    assert not {"Mounts", "Tmpfs", "Binds"} & plain["HostConfig"].keys()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:2375", "/run/docker.sock", "unix://relative.sock"])
def test_an_engine_is_reached_by_a_socket_of_this_machine(address: str) -> None:
    with pytest.raises(InvalidInput, match="unix:///"):
        Engine(address, timeout=1)
