"""Session workers whose project was deleted."""

from dataclasses import dataclass

from contextbase.sessions.model import AgentSession, SessionState
from contextbase.sessions.worker_host import WorkerHost
from contextbase.threads import in_thread
from contextbase.workspaces.folder import remove_tree

__all__ = ["WorkerRetirement"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerRetirement:
    host: WorkerHost

    async def retire(self, session: AgentSession) -> None:
        """End the session's sandbox and remove its home, which no snapshot has in any case. Can be repeated.

        The folder is kept with its row as it is: nothing can be stored in a deleted project, which loses nothing
        itself, and the folder may have work that is nowhere else. So is a container that holds files, stopped. The
        folder goes with the session, when its owner deletes that."""
        async with self.host.undisturbed(session.id):
            async with self.host.database.connection() as connection:
                record = await self.host.registry.open_one(connection, session.project_id, session.agent.id)
            await self.host.let_go(session.id)
            is_here = record is not None and record.node == self.host.machine
            if record is not None and is_here:
                await (
                    self.host.containers.stop(record) if session.has_container else self.host.occupancy.leave(record.id)
                )
            await in_thread(remove_tree, self.host.homes / str(session.id))
            if session.state is not SessionState.DELETED:
                await self.host.rows.end_sandbox(session)
                return
            if is_here and not session.has_container:
                await self.host.workspaces.abandon(session.caller(), session.workspace)
            await self.host.rows.lose(session)
