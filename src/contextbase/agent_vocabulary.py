"""The closed sets of words about what agents ask people and plan to do, shared by the server, the wire and clients."""

from enum import StrEnum

__all__ = [
    "ExecutionProfile",
    "PermissionDecision",
    "QuestionKind",
    "QuestionStatus",
    "ShareLevel",
    "TodoChange",
    "TodoStatus",
    "UsageGroup",
]


class ExecutionProfile(StrEnum):
    """How much an agent does by itself."""

    DEFAULT = "default"  # it asks for no permission: sandbox and gate hold
    ASK = "ask"  # a person permits each tool that changes something
    PLAN = "plan"  # it only says what it would do


class QuestionKind(StrEnum):
    """What an agent asks a person for."""

    QUESTION = "question"
    PERMISSION = "permission"  # to use a tool


class QuestionStatus(StrEnum):
    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"  # nobody answered in time
    CANCELED = "canceled"  # its run ended


class PermissionDecision(StrEnum):
    ALLOW_ONCE = "allow_once"
    ALLOW_SESSION = "allow_session"  # this tool, for as long as the session lasts
    DENY = "deny"


class ShareLevel(StrEnum):
    """What somebody may do in another's session."""

    READ = "read"
    DRIVE = "drive"  # send messages, stop runs, and answer what the agent asks


class SessionAccessLevel(StrEnum):
    """What whoever looks at a session may do there."""

    OWN = "own"
    DRIVE = "drive"
    READ = "read"


class TodoStatus(StrEnum):
    TODO = "todo"
    DOING = "doing"
    DONE = "done"
    CANCELED = "canceled"


class TodoChange(StrEnum):
    """What happened to an item of a todo list."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class UsageGroup(StrEnum):
    """What the use of models is added up by."""

    PERSON = "person"
    PROJECT = "project"
    MODEL = "model"
    DAY = "day"
