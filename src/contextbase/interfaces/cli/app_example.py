"""The example that `contextbase app init` makes."""

from typing import Any, Final

__all__ = ["example_config", "example_files", "example_manifest"]

_VERSION: Final = "1"
_RUNTIME: Final = f"registry/runtime/{_VERSION}"


def example_files() -> dict[str, str]:
    """By path in the app's tree."""
    return {
        f"{_RUNTIME}/template/AGENTS.md": "Knowledge is in .kb/app and .kb/project. The user's own files are in "
        ".user-files: what is written there stays after this session.\n",
        f"{_RUNTIME}/template/drafts/README.md": "Put what is not finished here.\n",
        f"{_RUNTIME}/seeds/TODO.md": "# To do\n",
        "registry/skills/greeting/SKILL.md": "---\nname: greeting\ndescription: How to greet somebody\n---\n\n"
        "Use the first name. Write the greeting into hello.md, in one line.\n",
        "kb/handbook/style.md": "# Style\n\nShort sentences. Say who does what.\n",
    }


def example_config(name: str) -> dict[str, Any]:
    return {
        "system_prompt": f"You are {name}. Read .kb/app first.",
        "skills": ["greeting"],
        "commands": {"greet": "Greet $ARGUMENTS, as the skill greeting says."},
    }


def example_manifest(app: str) -> dict[str, Any]:
    prefix = f"app/{app}/{_RUNTIME}"
    return {
        "appId": app,
        "runtimeVersion": _VERSION,
        "workspaceTemplatePrefix": f"{prefix}/template/",
        "requiredPaths": ["/workspace/.agent_data", "/workspace/.kb/app", "/workspace/.user-files"],
        "seedFiles": [{"from": f"{prefix}/seeds/TODO.md", "to": "/workspace/TODO.md", "ifMissingOnly": True}],
        "mountPoints": [
            {"name": "app_kb", "targetPath": "/workspace/.kb/app", "readOnly": True},
            {"name": "project_kb", "targetPath": "/workspace/.kb/project", "readOnly": True},
            {"name": "user_files", "targetPath": "/workspace/.user-files", "readOnly": False},
            {"name": "agent_data", "targetPath": "/workspace/.agent_data", "readOnly": False},
        ],
        "conflictPolicy": "keep_session",
        "protectedPaths": ["/workspace/.agent_data"],
        "cleanupRules": [{"action": "remove_if_exists", "path": "/workspace/.tmp"}],
    }
