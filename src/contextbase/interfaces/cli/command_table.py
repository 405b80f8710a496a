"""Every command: where it is, what it does in a line, and the task it belongs to. Nothing here imports a command."""

from dataclasses import dataclass
from typing import Final

__all__ = ["COMMANDS", "Entry"]

_HERE: Final = "contextbase.interfaces.cli"

_FILES: Final = "Files"
_HISTORY: Final = "History"
_AGENTS: Final = "Agents and workspaces"
_PEOPLE: Final = "People and rights"
_CHOICE: Final = "Choosing a server"
_SERVER: Final = "Server and data"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    name: str
    module: str
    attribute: str  # a function, or a Typer app with commands of its own
    help: str
    panel: str
    asks_a_server: bool = True  # then it takes --server


def _entry(name: str, target: str, panel: str, summary: str, *, asks_a_server: bool = True) -> Entry:
    module, _, attribute = target.partition(":")
    return Entry(
        name=name,
        module=f"{_HERE}.{module}",
        attribute=attribute,
        help=summary,
        panel=panel,
        asks_a_server=asks_a_server,
    )


COMMANDS: Final = (
    _entry("project", "projects:commands", _FILES, "Create, list, show, change and delete projects."),
    _entry("ls", "files:ls", _FILES, "List a project's files."),
    _entry("cat", "files:cat", _FILES, "Print a file."),
    _entry("find", "search:find", _FILES, "Find files by name."),
    _entry("grep", "search:grep", _FILES, "Search the text of files."),
    _entry("tree", "places:tree", _FILES, "Show all folders."),
    _entry("info", "places:info", _FILES, "Show how many files there are, and how much room they take."),
    _entry("download", "places:download", _FILES, "Store a file on this machine."),
    _entry("upload", "places:upload", _FILES, "Add files to a folder, under names that are free."),
    _entry("mkdir", "places:mkdir", _FILES, "Make a folder."),
    _entry("put", "files:put", _FILES, "Write a file to a project."),
    _entry("rm", "files:rm", _FILES, "Delete files or folders. Their history stays."),
    _entry("mv", "files:mv", _FILES, "Rename a file, or a folder with everything in it."),
    _entry("import", "imports:import_folder", _FILES, "Commit the files of a folder on this machine."),
    _entry("export", "export:export", _FILES, "Write a snapshot, or a part of it, to a folder or an archive."),
    _entry("watch", "watch:watch", _FILES, "Print changes as they land."),
    _entry("log", "log:log", _HISTORY, "Show commits, newest first."),
    _entry("show", "diff:show", _HISTORY, "Show a commit and what it changed, or a file as it was."),
    _entry("diff", "diff:diff", _HISTORY, "Show what differs between two snapshots."),
    _entry("blame", "blame:blame", _HISTORY, "Show which commit each line of a file comes from."),
    _entry("tag", "tags:commands", _HISTORY, "Name snapshots."),
    _entry("undo", "reverting:undo", _HISTORY, "Take back commits, and keep what others did since."),
    _entry("rollback", "reverting:rollback", _HISTORY, "Restore a file, a folder or everything to a snapshot."),
    _entry("bring-back", "reverting:bring_back", _HISTORY, "Replace a file by a version that was set aside."),
    _entry("purge", "reverting:purge", _HISTORY, "Remove contents from all history for good."),
    _entry("agent", "agent:agent", _AGENTS, "Let an agent, or several side by side, do a task."),
    _entry("chat", "chat:chat", _AGENTS, "Talk with an agent that works in a folder of its own."),
    _entry("session", "sessions:commands", _AGENTS, "Look after sessions with agents: what they did, and what waits."),
    _entry("agents", "agent_programs:agents", _AGENTS, "List the agent programs, and how to install the others."),
    _entry("workspace", "workspaces:commands", _AGENTS, "Work in private folders, and commit from there."),
    _entry("run", "run:run", _AGENTS, "Run a command in a workspace and a sandbox, and commit what it changed."),
    _entry("sandbox", "sandboxes:commands", _AGENTS, "Run commands in sandboxes on agents' workspaces."),
    _entry("mcp", "mcp:mcp", _AGENTS, "Give agent programs the tools (MCP), or print how to set them up."),
    _entry("lease", "leases:commands", _AGENTS, "Reserve files while you work on them."),
    _entry(
        "worker",
        "worker:commands",
        _AGENTS,
        "Run workers on copies of a plain folder's files, without a server.",
        asks_a_server=False,
    ),
    _entry("review", "reviews:commands", _PEOPLE, "Decide what waits for review."),
    _entry("policy", "policies:commands", _PEOPLE, "Control who may do what where, and how changes are merged."),
    _entry("user", "people:users", _PEOPLE, "Create, list, change and disable accounts of people and services."),
    _entry("department", "people:departments", _PEOPLE, "Create, list, rename and delete departments."),
    _entry("role", "people:roles", _PEOPLE, "Give people roles, take them away, and see what they give."),
    _entry("model", "models:commands", _PEOPLE, "Choose which models agents use, and what they may cost."),
    _entry("app", "apps:commands", _PEOPLE, "Register apps, and show them to people."),
    _entry("agent-config", "app_settings:configs", _PEOPLE, "Configure agents of an app, layer by layer."),
    _entry("kb", "app_settings:knowledge", _PEOPLE, "List and describe the knowledge bases of apps."),
    _entry("manifest", "app_settings:manifests", _PEOPLE, "Publish and compare how sessions of an app are composed."),
    _entry("token", "tokens:commands", _PEOPLE, "Create, list and revoke access tokens."),
    _entry("audit", "audit:audit", _PEOPLE, "Show or export the audit trail."),
    _entry("status", "status:status", _CHOICE, "Show which server answers, and whether its parts work."),
    _entry("servers", "logins:servers", _CHOICE, "List the servers this account knows.", asks_a_server=False),
    _entry("login", "logins:login", _CHOICE, "Store a server, or print a browser login.", asks_a_server=False),
    _entry("logout", "logins:logout", _CHOICE, "Forget a stored server.", asks_a_server=False),
    _entry("up", "server:up", _SERVER, "Start the server. Ctrl-C stops it.", asks_a_server=False),
    _entry("machine", "server:machine", _SERVER, "Start a machine for servers elsewhere.", asks_a_server=False),
    _entry("machines", "machines:commands", _SERVER, "List, drain and remove the machines that hold workspaces."),
    _entry("doctor", "doctor:doctor", _SERVER, "Check what this machine supports.", asks_a_server=False),
    _entry("config", "configuration:config", _SERVER, "List every setting and its value.", asks_a_server=False),
    _entry("backup", "backup:commands", _SERVER, "Create and verify backups of everything.", asks_a_server=False),
    _entry(
        "restore",
        "backup:restore",
        _SERVER,
        "Restore a backup into an empty data folder or database.",
        asks_a_server=False,
    ),
    _entry("fsck", "maintenance:fsck", _SERVER, "Verify commits, the audit trail and every blob.", asks_a_server=False),
    _entry("gc", "maintenance:gc", _SERVER, "Remove blobs that nothing refers to.", asks_a_server=False),
    _entry("db", "database:commands", _SERVER, "Manage the database.", asks_a_server=False),
)
