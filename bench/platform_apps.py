"""Apps: how long the store and a configuration take, and composing and storing a session, by turns with other ways to
copy its files."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import httpx
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.gate_world import write
from tests.support.postgres import embedded_server

from bench.platform_copies import OtherCopies
from contextbase.catalog.model import App, AppLayer, NewApp
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import migrate
from contextbase.gate.model import CommitRequest
from contextbase.ids import new_uuid
from contextbase.interfaces.api.app import create_app
from contextbase.sessions.app_sessions import AppSessionRequest
from contextbase.sessions.model import AgentSession
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.wire.agent_config import AgentConfig, ConfigLayer
from contextbase.wire.manifest import RuntimeManifest
from contextbase.workspaces.checkpoints import Wish

__all__ = ["CONTENT", "measure_apps"]

CONTENT: Final = b"A line of a template, as there are many.\n" * 25
_BATCH: Final = 500
_TURNS: Final = 5
_REMOVED: Final = 3


def measure_apps(
    folder: Path, *, apps: int, users: int, files: int, changes: int, rounds: int, copies: OtherCopies | None
) -> dict[str, float]:
    """`copies`: what composing and storing a session is compared with, by turns."""
    with embedded_server() as address:
        return asyncio.run(_measured(address, folder, (apps, users, files, changes, rounds), copies))


async def _measured(
    address: DatabaseAddress, folder: Path, sizes: tuple[int, int, int, int, int], copies: OtherCopies | None
) -> dict[str, float]:
    apps, users, files, changes, rounds = sizes
    database = await Database.connect(address)
    await migrate(database)
    await database.close()
    async with open_agent_world(address, folder) as world:
        app = await _app(world, files)
        await _crowd(world, apps, users)
        figures = await _asked(world, app, rounds)
        return figures | await _composed(world, app, (files, changes), copies)


async def _app(world: AgentWorld, files: int) -> App:
    core = world.services.core
    app = await core.apps.apps.register(world.owner, NewApp(name="bench", title="Bench"))
    prefix = "registry/runtime/1/template"
    named = [f"{prefix}/folder-{number % 20}/file-{number}.md" for number in range(files)]
    named += [f"registry/skills/{name}/SKILL.md" for name in ("x", "y")]
    for start in range(0, len(named), _BATCH):
        batch = [write(path, CONTENT + path.encode(), 0) for path in named[start : start + _BATCH]]
        await core.gate.commit(world.owner, CommitRequest(project_id=app.project_id, changes=tuple(batch)))
    manifest = {
        "appId": "bench",
        "runtimeVersion": "1",
        "workspaceTemplatePrefix": f"app/bench/{prefix}/",
        "mountPoints": [{"name": "user_files", "targetPath": "/workspace/.user-files", "readOnly": False}],
    }
    await core.apps.manifests.publish(world.owner, "bench", RuntimeManifest.model_validate(manifest))
    for layer, config in {
        ConfigLayer.APP: {"model": "a", "limits": {"seconds": 60}, "environment": {"A": "1", "B": "2"}},
        ConfigLayer.PROJECT: {"model": "b", "skills": ["x", "y"]},
        ConfigLayer.USER: {"limits": {"seconds": 30}, "commands": {"go": "Go on."}},
    }.items():
        await core.apps.configuration.put(world.owner, AppLayer("bench", layer), AgentConfig.model_validate(config))
    return app


async def _crowd(world: AgentWorld, apps: int, users: int) -> None:
    """Rows alone: apps with rules and members, and people."""
    people = [new_uuid() for _ in range(users)]
    made = [(new_uuid(), new_uuid(), f"crowd-{number}") for number in range(apps - 1)]
    owner, each = world.owner.principal.id, min(20, users)
    async with world.services.core.database.transaction() as connection:
        await connection.executemany(
            "INSERT INTO principals (id, kind, name) VALUES ($1, 'user', $2)",
            [(person, f"person-{number}") for number, person in enumerate(people)],
        )
        await connection.executemany(
            "INSERT INTO projects (id, name, description, epoch, created_by) VALUES ($1, $2, '', $3, $4)",
            [(tree, f"app-{name}", new_uuid(), owner) for _, tree, name in made],
        )
        await connection.executemany(
            "INSERT INTO apps (id, name, title, description, owner_id, project_id) VALUES ($1, $2, $3, $4, $5, $6)",
            [(app, name, name.title(), "It does what it does.", owner, tree) for app, tree, name in made],
        )
        await connection.executemany(
            "INSERT INTO app_visibility_rules (app_id, kind, subject) VALUES ($1, $2, $3)",
            [(app, kind, f"{kind}-{n}") for app, _, _ in made for kind in ("department", "role") for n in range(5)],
        )
        await connection.executemany(
            "INSERT INTO app_members (app_id, principal_id) VALUES ($1, $2)",
            [(app, people[(place + n) % users]) for place, (app, _, _) in enumerate(made) for n in range(each)],
        )
        await connection.execute("ANALYZE")


async def _asked(world: AgentWorld, app: App, rounds: int) -> dict[str, float]:
    """Over HTTP, without a network."""
    secret = world.services.core.data.read_owner_token()
    transport = httpx.ASGITransport(create_app(world.services))
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://bench", headers=headers) as client:

        async def get(path: str) -> None:
            answer = await client.get(f"/api/v1/apps/{path}")
            answer.raise_for_status()

        async def bare() -> None:
            (await client.get("/api/v1/version")).raise_for_status()

        return {
            "store_ms": await _median(lambda: get("store"), rounds),
            "effective_config_ms": await _median(lambda: get(f"{app.name}/effective-config"), rounds),
            "bare_request_ms": await _median(bare, rounds),
        }


async def _composed(
    world: AgentWorld, app: App, sizes: tuple[int, int], copies: OtherCopies | None
) -> dict[str, float]:
    """A new session's folder, what it takes to store what was changed in it, and its folder once more when it was lost
    with all that is in it but stored."""
    files, changes = sizes
    restored, synced, again, sessions = [], [], [], []
    for number in range(_TURNS):
        sessions.append(await _session(world, app, land="never"))
        restored.append(await _timed(world.host.folder(sessions[-1])))
        kept = await _session(world, app, land="auto")
        folder = (await world.host.folder(kept)).record.path
        await world.host.sync(kept, SnapshotReason.RUN_FINISHED)
        for path in sorted(folder.glob("folder-*/*.md"))[:changes]:
            path.write_bytes(CONTENT + f"changed {number}".encode())
        synced.append(await _timed(_stored(world, kept)))
        assert len(list(folder.glob("folder-*/*.md"))) == files
        if copies is not None:
            await asyncio.to_thread(copies.take_turn)
    for session in sessions[:_REMOVED]:
        await world.host.remove(session)
        again.append(await _timed(world.host.folder(session)))
    figures = {
        "restore_1000_files_ms": statistics.median(restored),
        "sync_100_changes_ms": statistics.median(synced),
        "restore_lost_folder_ms": statistics.median(again),
    }
    return figures if copies is None else figures | copies.figures()


async def _session(world: AgentWorld, app: App, *, land: str) -> AgentSession:
    overrides = AgentConfig.model_validate({"provider": "scripted", "landing": land})
    request = AppSessionRequest(app=app.name, overrides=overrides)
    return await world.services.core.sessions.apps.create(world.owner, request)


async def _stored(world: AgentWorld, session: AgentSession) -> None:
    await world.services.agents.workspaces.commit(session.caller(), session.workspace, wish=Wish())
    await world.host.sync(session, SnapshotReason.RUN_FINISHED)


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return 1000 * (time.perf_counter() - began)


async def _median(work: Callable[[], Awaitable[None]], rounds: int) -> float:
    await work()
    return statistics.median([await _timed(work()) for _ in range(rounds)])
