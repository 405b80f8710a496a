"""What callers may do with apps, asked in one place."""

from enum import StrEnum

from contextbase.catalog.model import App, ConfigScope, StoreEntry
from contextbase.errors import Forbidden, NotFound
from contextbase.identity.model import Action, Caller
from contextbase.wire.agent_config import ConfigLayer
from contextbase.wire.app import VisibilityKind

__all__ = ["AppRight", "manages", "require_management", "seen_entry", "unknown_app"]


class AppRight(StrEnum):
    USE_APP = "use_app"
    MANAGE_KB = "manage_kb"
    MANAGE_AGENTCONFIG = "manage_agentconfig"


def manages(caller: Caller, app: App, right: AppRight = AppRight.MANAGE_AGENTCONFIG) -> bool:
    """Whether the caller may change what the app gives to everybody."""
    return _decided(caller, right, f"app:{app.name}")[0]


def require_management(caller: Caller, app: App, right: AppRight, scope: ConfigScope) -> None:
    """Raise `Forbidden` unless the caller may change this layer. Whoever manages the app manages its projects."""
    if scope.layer is ConfigLayer.USER:
        asked = f"user:{scope.user.name}" if scope.user is not None else "platform"
    else:
        asked = f"app:{app.name}" if scope.layer is ConfigLayer.APP else f"project:{app.name}/{scope.project}"
    allowed, reason = _decided(caller, right, asked)
    if not allowed and scope.layer is ConfigLayer.PROJECT:
        allowed, _ = _decided(caller, right, f"app:{app.name}")
    if not allowed:
        raise Forbidden(f"You may not do this ({right} in {asked}): {reason}.")


def seen_entry(caller: Caller, app: App) -> StoreEntry | None:
    """What the caller may do with the app; None: it does not exist, as far as the caller can tell."""
    why_seen = _why_seen(caller, app)
    if why_seen is None:
        return None
    if not app.enabled:
        return StoreEntry(app=app, can_use=False, why_seen=why_seen, why_used="the app is disabled")
    allowed, reason = _decided(caller, AppRight.USE_APP, f"app:{app.name}")
    return StoreEntry(app=app, can_use=allowed, why_seen=why_seen, why_used=reason)


def unknown_app(name: str) -> NotFound:
    return NotFound(f"There is no app '{name[:120]}' that you may see.")


def _why_seen(caller: Caller, app: App) -> str | None:
    if manages(caller, app):
        return "you manage it"
    if app.owner_id == caller.principal.id:
        return "you own it"
    if app.is_member:
        return "it was granted to you"
    roles = frozenset({"platform_admin"} if _administers(caller) else {"member"})
    for rule in app.rules:
        having = roles if rule.kind is VisibilityKind.ROLE else frozenset[str]()
        if rule.subject in having:
            return f"it is shown to the {rule}"
    return None


def _administers(caller: Caller) -> bool:
    return caller.principal.is_owner or (Action.ADMIN in caller.grant.actions and caller.grant.project_id is None)


def _decided(caller: Caller, right: AppRight, scope: str) -> tuple[bool, str]:
    if _administers(caller):
        return True, "administrators may"
    if scope == f"user:{caller.principal.name}" and Action.WRITE in caller.grant.actions:
        return True, "it is your own"
    if right is AppRight.USE_APP and caller.grant.project_id is None and Action.READ in caller.grant.actions:
        return True, "members may use apps"
    return False, f"no role gives you '{right}' there"
