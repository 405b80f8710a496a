import pytest

from contextbase.commands.redaction import shown_command

SECRET = "s3cr3t-Value"
TOKEN = "cb_" + "x" * 43


@pytest.mark.parametrize(
    "command",
    [
        ["curl", "--token", SECRET, "https://example.org"],
        ["curl", f"--token={SECRET}"],
        ["mysql", "--password", SECRET],
        ["tool", "--api-key", SECRET, "--verbose"],
        ["env", f"AWS_SECRET_ACCESS_KEY={SECRET}", "deploy"],
        ["tool", f"key={SECRET}"],
        ["git", "clone", f"https://ann:{SECRET}@example.org/a.git"],
        ["psql", f"postgresql://ann:{SECRET}@db/app"],
        ["curl", "-H", f"Authorization: Bearer {SECRET}"],
        ["curl", "-H", f"X-Api-Key: {SECRET}"],
        ["curl", f"https://example.org/?access_token={SECRET}&page=2"],
        f"export DB_PASSWORD={SECRET}; deploy",
        f"deploy --token {SECRET} --to production",
        f"deploy --token '{SECRET} and more'",
        f"curl -H 'Authorization: Bearer {SECRET}' https://example.org",
        f"echo '-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----' > key",
        ["echo", f"-----BEGIN PRIVATE KEY-----\n{SECRET}"],
        ["sh", "-c", f"deploy --password {SECRET}"],
    ],
)
def test_a_secret_is_not_shown(command: str | list[str]) -> None:
    shown = shown_command(command)
    assert SECRET not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "token",
    [
        TOKEN,
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 20,
        "sk-" + "a1" * 20,
        "xoxb-1234567890-abcdef",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "glpat-" + "a1" * 10,
    ],
)
def test_what_looks_like_a_token_is_not_shown_wherever_it_stands(token: str) -> None:
    for command in (["echo", token], f"echo {token} > file", ["tool", f"--with={token}"]):
        assert token not in shown_command(command)


def test_what_is_no_secret_stays_as_it_was_typed() -> None:
    assert shown_command(["sed", "-i", "s/a b/c/", "plan.md"]) == "sed -i 's/a b/c/' plan.md"
    assert shown_command("make test && echo done > report.txt") == "make test && echo done > report.txt"
    assert shown_command(["git", "log", "--author", "ann@example.org"]).startswith("git log --author")
    assert shown_command(["deploy", "--token", "--dry-run"]) == "deploy --token --dry-run"


def test_a_long_command_is_cut_and_a_hostile_one_takes_no_time() -> None:
    assert len(shown_command("x" * 100_000)) < 1100
    assert len(shown_command(["x" * 100] * 10_000)) < 1300
    for piece in (
        "-" * 200_000,
        "token" * 40_000,
        "a://" * 50_000,
        "key = " * 30_000,
        "-----BEGIN PRIVATE KEY-----" * 9_000,
    ):
        shown_command(piece)
    assert SECRET not in shown_command("x" * 990 + f" --token {SECRET}")
    assert "\x1b" not in shown_command(["echo", "\x1b[2J"])
