"""The closed sets of words that the server, the wire and the clients share."""

from enum import StrEnum

__all__ = [
    "Action",
    "ArchiveFormat",
    "BudgetScope",
    "ChangeStatus",
    "CommitWhen",
    "ContentKind",
    "DiffKind",
    "DiffStatus",
    "FileAction",
    "FileChangeKind",
    "FolderChangeKind",
    "GrantSource",
    "Kind",
    "Land",
    "LandingState",
    "Limit",
    "MessagePartKind",
    "MessageRole",
    "MessageState",
    "ModelProtocol",
    "ModelRole",
    "Network",
    "OutputStream",
    "PlaceKind",
    "PrincipalKind",
    "QueueState",
    "Reason",
    "ReviewState",
    "RunState",
    "SandboxState",
    "ScanProblem",
    "ScopeKind",
    "SendMode",
    "SessionState",
    "SkipReason",
    "SliceEncoding",
    "StopReason",
    "SyncStatus",
    "ToolStatus",
    "TreeConflict",
    "UpstreamScope",
    "ValueChangeKind",
    "WayIn",
    "WorkerState",
    "WorkspaceState",
]


class PrincipalKind(StrEnum):
    USER = "user"
    AGENT = "agent"
    ADAPTER = "adapter"
    SYSTEM = "system"


class Action(StrEnum):
    """What a grant allows; each stands alone."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"  # manage projects, tokens and principals


class GrantSource(StrEnum):
    """Where a grant comes from."""

    TOKEN = "token"  # noqa: S105 - a word, no secret; sent with the request
    LOGIN = "login"  # a browser's, made from a token
    RUN = "run"  # a run of an agent, while it lasts
    CHORE = "chore"  # something the server does by itself


class WayIn(StrEnum):
    """How somebody came in. It is decided when the caller is authenticated, never from a request's body.

    Rows and answers call it `operator_type`."""

    WEB_UI = "web_ui"  # a person, in a browser
    AGENT = "agent"  # an agent in one of our workspaces or sandboxes
    EXTERNAL_AGENT = "external_agent"  # an agent that calls from outside
    SAAS_ADAPTER = "saas_adapter"
    API = "api"  # a person's program, or the command line
    SYSTEM = "system"  # the server itself


class Kind(StrEnum):
    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"
    DELETED = "deleted"  # the node is gone from here on; its history stays


class ReviewState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"
    REJECTED = "rejected"
    OBSOLETE = "obsolete"  # the conflict went away


class PlaceKind(StrEnum):
    FILE = "file"  # the whole file
    LINES = "lines"  # a line range of ours, "10-14"; "10-9" is the empty range before line 10
    POINTER = "pointer"  # a JSON pointer, "/scripts/test"
    KEY = "key"  # a dotted key, "tool.ruff.line-length"
    HEADING = "heading"  # headings from the outside in, "Usage > Install"
    ROW = "row"  # a table row by its key column
    CELL = "cell"  # a notebook cell by its id or position


class Reason(StrEnum):
    BOTH_CHANGED = "both-changed"
    BOTH_ADDED = "both-added"
    DELETED_AND_CHANGED = "deleted-and-changed"
    REVIEW = "review"  # the policy asks for a person


class ChangeStatus(StrEnum):
    """What became of a change. Every one of these, refused apart, means that nothing the writer sent is lost."""

    WRITTEN = "written"
    MERGED = "merged"
    UNCHANGED = "unchanged"  # the head has it already
    SUPERSEDED = "superseded"  # the policy prefers the head; kept as a side version
    IN_REVIEW = "in_review"  # kept as a side version with a review item; what was not contested is in
    REFUSED = "refused"


class FileChangeKind(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    RENAMED = "renamed"
    DELETED = "deleted"


class DiffStatus(StrEnum):
    """What became of a file that is compared."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"  # it may have been changed too
    UNCHANGED = "unchanged"


class DiffKind(StrEnum):
    """How two contents could be compared."""

    TEXT = "text"  # hunks
    STRUCTURE = "structure"  # hunks, and changes of values
    NOTEBOOK = "notebook"  # hunks, cells, and changes of values outside of them
    BINARY = "binary"  # sizes and hashes only
    LINK = "link"  # hunks of the targets
    FOLDER = "folder"
    SAME = "same"  # the contents are equal: only the path or the mode may differ


class ValueChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


class Limit(StrEnum):
    """What a command was stopped by. Processor time has none: a command that uses too much of it is slowed down."""

    MEMORY = "memory"
    PROCESSES = "processes"
    EXECUTION_TIME = "execution-time"
    OUTPUT = "output"
    DISK = "disk"


class Network(StrEnum):
    NONE = "none"
    LOOPBACK = "loopback"  # its own programs can talk to each other over 127.0.0.1, and to nobody else


class SandboxState(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    STOPPED = "stopped"  # nothing runs in it; its files are as they were


class OutputStream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


class CommitWhen(StrEnum):
    SUCCESS = "success"  # the command ended with 0
    ALWAYS = "always"
    NEVER = "never"


class FolderChangeKind(StrEnum):
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"  # with other content, too, if `content` differs
    MODE = "mode"  # nothing but the executable bit


class ScanProblem(StrEnum):
    """Why something in a workspace is not part of its changes."""

    NAME = "name"  # a tree cannot hold this name
    SPECIAL = "special"  # a socket, pipe or device
    BUSY = "busy"  # it changed each time we read it
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    SECRET = "secret"  # noqa: S105 - it looks like one, and nobody allowed it
    PURGED = "purged"  # the project does not take this content again


class WorkspaceState(StrEnum):
    OPEN = "open"
    COMPLETED = "completed"  # everything in it was committed
    ABANDONED = "abandoned"
    LOST = "lost"  # its folder is gone, or of a history from before a restore


class SkipReason(StrEnum):
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"  # its content is damaged; fsck says more


class StopReason(StrEnum):
    """Why a page ended before the search did."""

    MATCHES = "matches"  # it has as many as were asked for
    BYTES = "bytes"  # it has read as much as one page may
    TIME = "time"


class ArchiveFormat(StrEnum):
    TAR = "tar"
    TAR_GZ = "tar.gz"
    ZIP = "zip"


class ScopeKind(StrEnum):
    PROJECT = "project"
    SESSION = "session"
    USER = "user"
    WORKSPACE = "workspace"
    SYSTEM = "system"


class ContentKind(StrEnum):
    FILE = "file"
    SYMLINK = "symlink"


class TreeConflict(StrEnum):
    CONTENT = "content"
    DELETED_AND_CHANGED = "deleted-and-changed"
    RENAMED_TWICE = "renamed-twice"
    FILE_AND_FOLDER = "file-and-folder"
    FOLDER_NOT_EMPTY = "folder-not-empty"
    KIND_CHANGED = "kind-changed"


class RunState(StrEnum):
    """Of a run of an agent, in the order in which it goes through them when nothing happens to it."""

    QUEUED = "queued"  # waits for a machine, for the run before it, or parked
    CLAIMED = "claimed"
    RESTORING = "restoring"  # the session's folder is made ready
    LINKING = "linking"  # the agent CLI's own data is put in place
    PREPARING = "preparing"  # sandbox and executor
    RUNNING = "running"
    WAITING_HUMAN = "waiting_human"
    SYNCING = "syncing"  # what it did is stored
    EXPORTED = "exported"  # and has landed, as far as it may
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class SendMode(StrEnum):
    """What becomes of a message while a run of its session works."""

    QUEUE = "queue"  # it waits
    STEER = "steer"  # it goes into the working turn
    INTERRUPT = "interrupt"  # the working run is ended first


class Land(StrEnum):
    """What becomes of a run's changes when it succeeds."""

    AUTO = "auto"
    AFTER_REVIEW = "after_review"
    NEVER = "never"


class LandingState(StrEnum):
    """What became of a run's changes."""

    LANDED = "landed"
    NOTHING = "nothing"  # the run changed nothing
    WAITS = "waits"  # uncommitted in the session's folder, until somebody commits or discards it
    DISCARDED = "discarded"  # somebody threw them away


class SessionState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"  # takes no more messages
    DELETED = "deleted"  # its machine still has to remove what it holds


class WorkerState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    DELETED = "deleted"


class SyncStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class QueueState(StrEnum):
    BEHIND = "behind"  # an earlier run of its session has not ended
    READY = "ready"
    CLAIMED = "claimed"
    PARKED = "parked"


class FileAction(StrEnum):
    WRITE = "write"
    DELETE = "delete"
    RENAME = "rename"
    MAKE_FOLDER = "mkdir"
    SYNC = "sync"


class SliceEncoding(StrEnum):
    TEXT = "text"
    BASE64 = "base64"


class ModelProtocol(StrEnum):
    """Whose API a model service speaks."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"


class ModelRole(StrEnum):
    """What a model is for: the work itself, or small questions beside it."""

    MAIN = "main"
    SMALL = "small"


class UpstreamScope(StrEnum):
    """Whose a model service is. Of several the first in this order answers."""

    USER = "user"
    PROJECT = "project"
    PLATFORM = "platform"


class BudgetScope(StrEnum):
    """Whose model budget it is."""

    USER = "user"
    PROJECT = "project"


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class MessageState(StrEnum):
    STREAMING = "streaming"
    DONE = "done"


class MessagePartKind(StrEnum):
    TEXT = "text"
    REASONING = "reasoning"


class ToolStatus(StrEnum):
    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    INTERRUPTED = "interrupted"  # its run ended before it did
