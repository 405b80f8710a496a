"""What looks like credentials, by name and by content. No token here is a real one."""

import random
import string

import pytest

from contextbase.workspaces.credentials import MOST_SCANNED, Credential, credential_in

_RANDOM = random.Random(7)


def made(length: int, characters: str = string.ascii_letters + string.digits) -> str:
    return "".join(_RANDOM.choices(characters, k=length))


PEM = "-----BEGIN {}PRIVATE KEY-----\n{}\n-----END {}PRIVATE KEY-----\n"
AWS = f"aws_access_key_id = AKIA{made(16, string.ascii_uppercase)}\naws_secret_access_key = {made(40)}\n"
TOKENS = {
    "a private key": PEM.format("RSA ", made(64), "RSA "),
    "an AWS access key with its secret": AWS,
    "a GitHub token": f"gh{'p'}_{made(36)}",
    "a GitLab token": f"gl{'pat'}-{made(20)}",
    "a Slack token": f"xox{'b'}-{made(12, string.digits)}-{made(24)}",
    "an Anthropic key": f"sk-{'ant'}-api03-{made(95)}",
    "an OpenAI key": f"sk-{'proj'}-{made(60)}",
    "a Google API key": f"AI{'za'}{made(35)}",
    "a Stripe key": f"sk_{'live'}_{made(24)}",
    "an npm token": f"np{'m'}_{made(36)}",
    "a PyPI token": f"py{'pi'}-AgEIcHlwaS5vcmc{made(80)}",
    "a contextbase token": f"c{'b'}_{made(43)}",
}


@pytest.mark.parametrize(("what", "token"), TOKENS.items(), ids=TOKENS)
def test_tokens_are_found_in_text_with_their_line(what: str, token: str) -> None:
    text = f"# settings\n\nvalue = '{token}'\n"
    found = credential_in(None, text.encode())
    assert found == Credential(what=what, line=3)
    assert token not in str(found)


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_what_an_older_version_had_is_not_found_again(token: str) -> None:
    text = f"old = '{token}'\n".encode()
    assert credential_in(None, b"new\n" + text) is not None
    assert credential_in(None, b"new\n" + text, known=text) is None


@pytest.mark.parametrize(
    "text",
    [
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-ant-api03-your-key-here-your-key-here-your-key-here-your-key-here",
        "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AKIAQWERTYUIOPASDFGH is an id without its secret",
        "AKIAQWERTYUIOPASDFGH at commit 0123456789abcdef0123456789abcdef01234567",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\n" + "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A" * 4,
        "cb_function_with_a_really_long_name_for_a_callback",
        "disk-management-of-the-system-with-very-long-names-in-kebab-case",
        "npm_config_registry npm_lifecycle_event",
    ],
)
def test_examples_and_names_are_no_tokens(text: str) -> None:
    assert credential_in("notes.md", text.encode()) is None


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".env", "KEY=1"),
        ("app/.env.production", "KEY=1"),
        (".ENV", "KEY=1"),
        ("home/id_ed25519", "x"),
        ("keys/server.p12", "\0\1"),
        ("keys/server.key", "\x30\x82\1\0\2"),
        (".netrc", "machine a login b password c"),
        (".npmrc", "//registry.example/:_authToken=abc"),
        (".pypirc", "[pypi]\npassword = abc"),
        ("home/.aws/credentials", "aws_secret_access_key = abc"),
        ("gcloud/credentials.json", '{"refresh_token": "abc"}'),
        (".kube/config", "users:\n- user:\n    token: abc"),
        ("dev.kubeconfig", "password: abc"),
        (".git-credentials", "https://ann:secret@git.example"),
        (".docker/config.json", '{"auths": {"a": {"auth": "abc"}}}'),
    ],
)
def test_new_files_are_known_by_their_names(path: str, content: str) -> None:
    found = credential_in(path, content.encode("latin-1"))
    assert found is not None
    assert found.line is None
    assert credential_in(None, content.encode("latin-1")) is None  # the project has the file: its name is nothing new


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".env.example", "KEY=1"),
        (".env.local.sample", "KEY=1"),
        ("my.environment", "KEY=1"),
        (".env", ""),
        (".env", "# nothing\nKEY=\n"),
        ("id_rsa.pub", "ssh-rsa AAAA"),
        ("ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n"),
        ("slides.key", "PK\3\4"),
        (".npmrc", "save-exact=true\n//registry.example/:_authToken=${NPM_TOKEN}"),
        ("credentials.json", '{"note": "there are none"}'),
        (".docker/config.json", '{"credsStore": "desktop"}'),
        ("docs/credentials", "How to get them."),
    ],
)
def test_files_without_secrets_in_them_are_let_through(path: str, content: str) -> None:
    assert credential_in(path, content.encode("latin-1")) is None


def test_binary_files_are_judged_by_name_alone() -> None:
    assert credential_in("a.bin", b"\0" + TOKENS["a GitHub token"].encode()) is None


def test_no_content_is_slow_to_scan() -> None:
    for piece in (
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "sk-ant-api03-",
        "ghp_a",
        "AKIA" + "A1" * 8 + " ",
        "= \t",
        "xoxb-a",
    ):
        text = (piece * (MOST_SCANNED // len(piece))).encode()
        credential_in(".env", text)  # a quadratic expression would take hours
