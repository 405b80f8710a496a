"""The words of roles, which the server, the wire and the clients share."""

from enum import StrEnum

__all__ = ["Right", "Role", "RoleScopeKind"]


class Right(StrEnum):
    """What roles give beside the actions of the core, somewhere."""

    USE_APP = "use_app"
    MANAGE_KB = "manage_kb"
    MANAGE_AGENTCONFIG = "manage_agentconfig"
    BROWSE_FILES = "browse_files"
    EDIT_FILES = "edit_files"
    OPEN_TERMINAL = "open_terminal"


class Role(StrEnum):
    PLATFORM_ADMIN = "platform_admin"
    APP_ADMIN = "app_admin"
    PROJECT_ADMIN = "project_admin"
    MEMBER = "member"


class RoleScopeKind(StrEnum):
    """Where a role holds."""

    PLATFORM = "platform"
    APP = "app"
    PROJECT = "project"
    USER = "user"
    DEPARTMENT = "department"
