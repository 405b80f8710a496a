"""What callers may do with apps, asked in one place."""

from contextbase.catalog.model import App, ConfigScope, StoreEntry, VisibilityRule
from contextbase.errors import NotFound
from contextbase.identity.authorization import authorize, decide, standing
from contextbase.identity.model import Caller
from contextbase.identity.roles import RoleScope
from contextbase.role_vocabulary import Right
from contextbase.wire.agent_config import ConfigLayer
from contextbase.wire.app import VisibilityKind

__all__ = ["manages", "require_management", "rules_about", "seen_entry", "unknown_app"]


def manages(caller: Caller, app: App) -> bool:
    """Whether the caller may change what the app gives to everybody."""
    return decide(caller, Right.MANAGE_AGENTCONFIG, RoleScope.of_app(app.name)).allowed


def require_management(caller: Caller, app: App, right: Right, scope: ConfigScope) -> None:
    """Raise `Forbidden` unless the caller may change this layer. Whoever manages the app manages its projects."""
    if scope.user is not None:
        authorize(caller, right, RoleScope.of_user(scope.user.name))
        return
    of_app = RoleScope.of_app(app.name)
    if scope.layer is ConfigLayer.PROJECT and not decide(caller, right, of_app).allowed:
        authorize(caller, right, RoleScope.of_app_project(app.name, scope.project))
        return
    authorize(caller, right, of_app)


def seen_entry(caller: Caller, app: App) -> StoreEntry | None:
    """What the caller may do with the app; None: it does not exist, as far as the caller can tell."""
    why_seen = _why_seen(caller, app)
    if why_seen is None:
        return None
    if not app.enabled:
        return StoreEntry(app=app, can_use=False, why_seen=why_seen, why_used="the app is disabled")
    used = decide(caller, Right.USE_APP, RoleScope.of_app(app.name))
    return StoreEntry(app=app, can_use=used.allowed, why_seen=why_seen, why_used=used.reason)


def rules_about(caller: Caller) -> list[VisibilityRule]:
    """The rules that would show an app to the caller."""
    known = standing(caller)
    rules = [VisibilityRule(kind=VisibilityKind.DEPARTMENT, subject=name) for name in known.departments]
    return rules + [VisibilityRule(kind=VisibilityKind.ROLE, subject=role) for role in known.roles]


def unknown_app(name: str) -> NotFound:
    return NotFound(f"There is no app '{name[:120]}' that you may see.")


def _why_seen(caller: Caller, app: App) -> str | None:
    if manages(caller, app):
        return "you manage it"
    if app.owner_id == caller.principal.id:
        return "you own it"
    if app.is_member:
        return "it was granted to you"
    for rule in rules_about(caller):
        if rule in app.rules:
            return f"it is shown to the {rule}"
    return None
