"""Who may read a stream that is not a project's."""

from dataclasses import dataclass

from contextbase.errors import InvalidInput, NotFound
from contextbase.identity.model import Action, Caller
from contextbase.streams.model import Scope, ScopeKind
from contextbase.streams.ports import SessionAuthorizer, WorkspaceAuthorizer

__all__ = ["ReadableScope", "ScopeAccess"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadableScope:
    """A scope that whoever holds this may read: given to callers by `ScopeAccess`, made by server code for itself."""

    scope: Scope


class ScopeAccess:
    def __init__(self, *, sessions: SessionAuthorizer, workspaces: WorkspaceAuthorizer) -> None:
        self._sessions = sessions
        self._workspaces = workspaces

    async def readable(self, caller: Caller, scope: Scope) -> ReadableScope:
        """Raises `Forbidden` for what the grant does not allow at all, `NotFound` for what is somebody else's, whether
        it exists or not."""
        if scope.kind is ScopeKind.PROJECT:
            raise InvalidInput("A project's events are read through its feed, which looks at their paths.")
        if scope.kind is ScopeKind.WORKSPACE:
            if not await self._workspaces.may_read(caller, scope.id):
                raise _unknown(scope)
            return ReadableScope(scope=scope)
        # A session is in a project: a grant for that one is enough.
        project_id = caller.grant.project_id if scope.kind is ScopeKind.SESSION else None
        caller.require(Action.ADMIN if scope.kind is ScopeKind.SYSTEM else Action.READ, project_id)
        if scope.kind is ScopeKind.USER and scope.id != caller.principal.id:
            raise _unknown(scope)
        if scope.kind is ScopeKind.SESSION and not await self._sessions.may_read(caller, scope.id):
            raise _unknown(scope)
        return ReadableScope(scope=scope)


def _unknown(scope: Scope) -> NotFound:
    return NotFound(f"There is no stream {scope} that you may read.")
