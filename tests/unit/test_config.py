"""Settings: who beats whom, what is refused, and that secrets stay secret."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from contextbase.config import Settings, load_settings, read_settings_file, unknown_variables
from contextbase.config.groups import SettingsGroup
from contextbase.errors import InvalidSettings

SECRET = "hunter2-hunter2-hunter2-hunter2-hunter2"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("CONTEXTBASE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write_settings(folder: Path, text: str) -> Path:
    file = folder / "contextbase.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_without_anything_the_defaults_hold() -> None:
    settings = load_settings()
    assert (settings.server.host, settings.server.port, settings.data) == ("127.0.0.1", 8787, Path(".contextbase-data"))


def test_the_file_in_the_data_folder_beats_the_default(tmp_path: Path) -> None:
    write_settings(tmp_path / ".contextbase-data", "port = 1111")
    assert load_settings().server.port == 1111


def test_the_environment_beats_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_settings(tmp_path / ".contextbase-data", "port = 1111\nhost = '0.0.0.0'")
    monkeypatch.setenv("CONTEXTBASE_PORT", "2222")
    settings = load_settings()
    assert (settings.server.port, settings.server.host) == (2222, "0.0.0.0")  # noqa: S104 - a value, nothing listens


def test_an_option_beats_the_environment_and_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_settings(tmp_path / "data", "port = 1111\nlog_level = 'error'")
    monkeypatch.setenv("CONTEXTBASE_PORT", "2222")
    monkeypatch.setenv("CONTEXTBASE_HOST", "::1")
    settings = load_settings(port=3333, data=tmp_path / "data")
    assert (settings.server.port, settings.server.host, settings.logs.level) == (3333, "::1", "error")


def test_an_option_leaves_secrets_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTBASE_AUDIT_KEY", SECRET)
    assert load_settings(port=1).audit.key == SecretStr(SECRET)


def test_the_named_file_is_read_instead_of_the_data_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_settings(tmp_path / ".contextbase-data", "port = 1111")
    named = tmp_path / "other.toml"
    named.write_text("port = 4444")
    monkeypatch.setenv("CONTEXTBASE_CONFIG", str(named))
    assert load_settings().server.port == 4444


def test_a_variable_that_is_set_but_empty_is_as_good_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTBASE_DATA", "")
    monkeypatch.setenv("CONTEXTBASE_DATABASE_URL", "")
    settings = load_settings()
    assert (settings.data, settings.database.url) == (Path(".contextbase-data"), None)
    sources = {row.source for row in settings.listing(environment={"CONTEXTBASE_DATA": ""}, file_values={})}
    assert sources == {"default"}


@pytest.mark.parametrize("name", Settings.known())
def test_every_setting_is_described_in_a_sentence(name: str) -> None:
    description = Settings.known()[name].info.description
    assert description
    assert description.endswith(".")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "-1"),
        ("port", "65536"),
        ("port", "http"),
        ("port", "1.5"),
        ("host", "h" * 254),
        ("public_url", "example.com"),
        ("public_url", "ftp://example.com"),
        ("public_url", "http://"),
        ("public_url", "http://[::1"),
        ("s3_endpoint", "localhost:9000"),
        ("database_url", f"mysql://root:{SECRET}@db/x"),
        ("database_url", f"postgresql://[{SECRET}"),
        ("database_url", f"postgresql://me:{SECRET}\N{ACCOUNT OF}@db/x"),
        ("database_pool_size", "1"),
        ("database_timeout_seconds", "0"),
        ("database_timeout_seconds", "nan"),
        ("blobs", "s3://"),
        ("blobs", "s3://UPPER/x"),
        ("blobs", "gcs://bucket"),
        ("blobs", ""),
        ("inline_limit_bytes", "2000000"),
        ("inline_limit_bytes", "-1"),
        ("audit_key", "short"),
        ("gc_grace_hours", "-1"),
        ("gc_grace_hours", "nan"),
        ("gc_grace_hours", "inf"),
        ("gc_grace_hours", "1e300"),
        ("max_request_bytes", "1"),
        ("shutdown_grace_seconds", "inf"),
        ("log_level", "loud"),
        ("log_format", "xml"),
    ],
)
def test_a_wrong_value_is_refused_with_the_settings_name_and_without_the_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with pytest.raises(InvalidSettings) as of_option:
        load_settings(**{name: value})
    assert f"'{name}'" in of_option.value.message
    assert f"CONTEXTBASE_{name.upper()}" in of_option.value.message
    assert SECRET not in of_option.value.message
    if value:
        monkeypatch.setenv(f"CONTEXTBASE_{name.upper()}", value)
        with pytest.raises(InvalidSettings) as of_variable:
            load_settings()
        assert of_variable.value.message == of_option.value.message


def test_every_number_in_range_can_be_counted_with() -> None:
    """A limit that is accepted must not overflow where it is used."""
    for name, setting in Settings.known().items():
        if name.endswith(("_hours", "_seconds")):
            most = next(limit.le for limit in setting.info.metadata if hasattr(limit, "le"))
            assert timedelta(hours=most) if name.endswith("_hours") else timedelta(seconds=most)


def test_a_key_the_file_misspells_is_refused_by_name(tmp_path: Path) -> None:
    write_settings(tmp_path / ".contextbase-data", "prot = 1")
    with pytest.raises(InvalidSettings, match="'prot' does not exist"):
        load_settings()


def test_a_group_is_no_section_of_the_file(tmp_path: Path) -> None:
    write_settings(tmp_path / ".contextbase-data", "[server]\nport = 1")
    with pytest.raises(InvalidSettings, match="'server' does not exist"):
        load_settings()


def test_no_two_groups_have_a_setting_of_one_name() -> None:
    names = [group.prefix + field for group in SettingsGroup.__subclasses__() for field in group.model_fields]
    assert sorted(["data", *names]) == sorted(Settings.known())


def test_a_list_is_given_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTBASE_SANDBOX_EXTRA_FOLDERS", '["/opt/tools"]')
    assert load_settings().sandbox.extra_folders == (Path("/opt/tools"),)
    monkeypatch.setenv("CONTEXTBASE_SANDBOX_EXTRA_FOLDERS", "/opt/tools")
    with pytest.raises(InvalidSettings, match=r"'sandbox_extra_folders'.*JSON"):
        load_settings()


@pytest.mark.parametrize("content", [b"port = ", b"\xff\xfe", b"[section]\nport = 1\n[section]"])
def test_a_file_that_is_not_toml_is_refused_by_its_path(tmp_path: Path, content: bytes) -> None:
    write_settings(tmp_path / ".contextbase-data", "").write_bytes(content)
    with pytest.raises(InvalidSettings, match=r"contextbase\.toml cannot be read"):
        load_settings()


def test_a_named_file_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONTEXTBASE_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(InvalidSettings, match=r"none\.toml .* does not exist"):
        load_settings()


def test_a_file_where_the_data_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSettings, match="cannot be read"):
        load_settings(data=tmp_path / "file")


def test_a_misspelt_variable_is_listed_and_those_for_other_ends_are_not() -> None:
    environment = dict.fromkeys(
        ["CONTEXTBASE_PROT", "CONTEXTBASE_PORT", "CONTEXTBASE_TOKEN", "CONTEXTBASE_URL", "CONTEXTBASE_CONFIG", "HOME"],
        "x",
    )
    assert unknown_variables(environment) == ["CONTEXTBASE_PROT"]


def test_secrets_are_in_no_listing_and_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "database_url": f"postgresql://me:{SECRET}@db/x",
        "s3_secret_access_key": SECRET,
        "audit_key": SECRET,
    }
    for name, value in values.items():
        monkeypatch.setenv(f"CONTEXTBASE_{name.upper()}", value)
    settings = load_settings()
    rows = settings.listing(
        environment={f"CONTEXTBASE_{name.upper()}": value for name, value in values.items()}, file_values={}
    )
    assert SECRET not in f"{settings!r} {settings} {rows} {settings.model_dump_json()}"
    assert {row.name for row in rows if row.value == "(set, hidden)"} == set(values)


def test_whatever_holds_a_secret_is_declared_secret() -> None:
    telling = ("secret", "password", "_key", "database_url", "token")
    for name, setting in Settings.known().items():
        if any(word in name for word in telling) and name != "s3_access_key_id":
            assert "SecretStr" in str(setting.info.annotation), name


def test_the_listing_says_where_each_value_came_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_settings(tmp_path / ".contextbase-data", "host = '::1'\nport = 1")
    monkeypatch.setenv("CONTEXTBASE_PORT", "2")
    environment = {"CONTEXTBASE_PORT": "2"}
    rows = {row.name: row for row in load_settings().listing(environment=environment, file_values=read_settings_file())}
    assert [(rows[name].value, rows[name].source) for name in ("port", "host", "blobs")] == [
        ("2", "environment"),
        ("::1", "file"),
        ("local", "default"),
    ]
    assert list(rows) == list(Settings.known())


@pytest.mark.parametrize(
    ("blobs", "bucket", "prefix"),
    [
        ("local", None, ""),
        ("s3://my-bucket", "my-bucket", ""),
        ("s3://my.bucket/a/b/", "my.bucket", "a/b"),
    ],
)
def test_the_place_of_blobs_is_read_from_its_address(blobs: str, bucket: str | None, prefix: str) -> None:
    location = load_settings(blobs=blobs).storage.blob_location
    assert (location.bucket, location.prefix) == (bucket, prefix)
