"""The closed sets of words that the server, the wire and the clients share."""

from enum import StrEnum

__all__ = ["Action", "GrantSource", "Kind", "PlaceKind", "PrincipalKind", "Reason", "ReviewState", "WayIn"]


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
