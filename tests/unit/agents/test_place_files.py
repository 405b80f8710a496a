"""Instructions, skills and slash commands of a place are words for the agent."""

from pathlib import Path

import pytest

from contextbase.agents.instructions import place_instructions
from contextbase.agents.slash_commands import expanded_prompt


def put(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def test_the_agent_is_told_what_skills_there_are_and_where(tmp_path: Path) -> None:
    assert place_instructions(tmp_path) is None
    put(tmp_path, ".claude/skills/pdf/SKILL.md", '---\nname: pdf\ndescription: "Reads PDF files"\n---\nDo this.')
    put(tmp_path, ".opencode/skills/plain/SKILL.md", "# How to plan\n\nSlowly.")
    put(tmp_path, ".agents/skills/pdf/SKILL.md", "---\nname: pdf\n---\nThe second of a name is not told.")
    put(tmp_path, ".claude/skills/empty/notes.md", "No skill.")
    put(tmp_path, "CLAUDE.md", "Be brief.")
    told = place_instructions(tmp_path) or ""
    assert told.startswith("Instructions of this place (CLAUDE.md):\n\nBe brief.")
    assert told.splitlines()[-2:] == [
        "- pdf: Reads PDF files (.claude/skills/pdf/SKILL.md)",
        "- plain: How to plan (.opencode/skills/plain/SKILL.md)",
    ]


def test_a_skill_that_is_a_link_or_not_a_file_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, "secret.md", "Secret words.")
    for name in ("linked", "folder"):
        (tmp_path / ".claude" / "skills" / name).mkdir(parents=True)
    (tmp_path / ".claude" / "skills" / "linked" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / ".claude" / "skills" / "folder" / "SKILL.md").mkdir()
    (tmp_path / "AGENTS.md").mkdir()
    assert place_instructions(tmp_path) is None


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("/fix 12 now", "Fix issue 12 now, first 12, then now, and ."),
        ("/team:greet", "Say hello. !`touch hooked`"),
        ("/team:greet Ann and Ben", "Say hello. !`touch hooked`\n\nAnn and Ben"),
        ("/nothing here", "/nothing here"),
        ("/etc/hosts", "/etc/hosts"),
        ("/../fix", "/../fix"),
        ("Say /fix", "Say /fix"),
        ("Fix it.", "Fix it."),
    ],
)
def test_a_slash_command_stands_for_the_text_of_its_file(tmp_path: Path, prompt: str, expected: str) -> None:
    put(
        tmp_path,
        ".claude/commands/fix.md",
        "---\nallowed-tools: Bash\n---\nFix issue $ARGUMENTS, first $1, then $2, and $3.",
    )
    put(tmp_path, ".opencode/command/team/greet.md", "Say hello. !`touch hooked`")
    assert expanded_prompt(prompt, tmp_path, {}) == expected


def test_a_command_of_the_configuration_comes_before_one_of_the_place(tmp_path: Path) -> None:
    put(tmp_path, ".claude/commands/fix.md", "Of the place.")
    assert expanded_prompt("/fix it", tmp_path, {"fix": "Fix $1 now."}) == "Fix it now."
