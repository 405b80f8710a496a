"""The product's own example of an app, for sessions whose files are in a container."""

from typing import Any, Final

from tests.support.agent_world import AgentWorld
from tests.support.app_examples import MANIFEST
from tests.support.docker_engine import DockerEngine
from tests.support.gate_world import write

from contextbase.catalog.model import App, NewApp
from contextbase.errors import NotFound
from contextbase.gate.model import CommitRequest
from contextbase.ids import TreePath
from contextbase.sessions.model import AgentSession, SessionWorker
from contextbase.sessions.repository import SessionRepository
from contextbase.wire.manifest import RuntimeManifest

__all__ = ["APP", "FILES", "container", "put", "text_of", "the_app", "worker"]

APP: Final = "code-assistant"
RUNTIME: Final = "registry/runtime/2026.02.11"
FILES: Final = "project/default/owner/files"


async def the_app(agents: AgentWorld) -> App:
    """Of the product's own example of a manifest."""
    core = agents.services.core
    app = await core.apps.apps.register(agents.owner, NewApp(name=APP, title="Code assistant"))
    await put(
        agents,
        app,
        {
            f"{RUNTIME}/template/src/main.py": "print(1)\n",
            f"{RUNTIME}/template/docs/guide.md": "one\ntwo\nthree\n",
            f"{RUNTIME}/seeds/README.md": "# Read me\n",
            f"{RUNTIME}/seeds/.editorconfig": "root = true\n",
            "kb/style.md": "Be brief.\n",
            "project/default/kb/plan.md": "The plan.\n",
            f"{FILES}/mine.md": "mine\n",
        },
    )
    await core.apps.manifests.publish(agents.owner, APP, RuntimeManifest.model_validate(MANIFEST))
    return app


async def put(agents: AgentWorld, app: App, files: dict[str, str]) -> None:
    gate = agents.services.core.gate
    async with agents.services.core.database.connection() as connection:
        base = (await gate.opened(connection, agents.owner, app.project_id)).seq
    changes = tuple(write(path, text.encode(), base) for path, text in files.items())
    await gate.commit(agents.owner, CommitRequest(project_id=app.project_id, changes=changes))


async def text_of(agents: AgentWorld, app: App, path: str) -> str | None:
    place = agents.services.agents.files.project(agents.owner, app.project_id)
    try:
        async with place.opened(TreePath(path)) as file:
            return b"".join([piece async for piece in file.content.stream(0, file.content.size)]).decode()
    except NotFound:
        return None


async def worker(agents: AgentWorld, session: AgentSession) -> SessionWorker:
    async with agents.services.core.database.connection() as connection:
        found = await SessionRepository().worker(connection, session.id)
    assert found is not None
    return found


def container(engine: DockerEngine, found: SessionWorker) -> dict[str, Any] | None:
    listed = engine.containers(str(found.container_id))
    return listed[0] if listed else None
