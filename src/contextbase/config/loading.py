"""Where settings come from: options of a command, the environment, a file."""

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, get_origin

from pydantic import ValidationError

from contextbase.config.settings import ENV_PREFIX, KnownSetting, Settings
from contextbase.data_folder import DEFAULT_DATA
from contextbase.errors import InvalidSettings

__all__ = ["load_settings", "read_settings_file", "unknown_variables"]

SETTINGS_FILE: Final = "contextbase.toml"

# Variables with our prefix that are not settings of the server.
_OTHER_VARIABLES: Final = frozenset(
    {
        "CONTEXTBASE_CONFIG",
        "CONTEXTBASE_PROJECT",
        "CONTEXTBASE_SERVER",
        "CONTEXTBASE_TEST_REQUIRE",
        "CONTEXTBASE_TOKEN",
        "CONTEXTBASE_URL",
    }
)


def load_settings(**overrides: Any) -> Settings:
    """Read the settings file and the environment; `overrides` (command-line options that were given) beat both."""
    values = read_settings_file(overrides.get("data")) | _from_environment(os.environ) | overrides
    for name in values.keys() - Settings.known().keys():
        raise InvalidSettings(f"The setting '{name}' does not exist; `contextbase config` lists those that do.")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InvalidSettings(_first_problem(error)) from None


def read_settings_file(data: Path | None = None) -> dict[str, Any]:
    """The values of `$CONTEXTBASE_CONFIG`, or of contextbase.toml in the data folder when there is one."""
    named = os.environ.get("CONTEXTBASE_CONFIG")
    path = Path(named) if named else (data or Path(os.environ.get("CONTEXTBASE_DATA") or DEFAULT_DATA)) / SETTINGS_FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise InvalidSettings(f"The settings file {path} (from CONTEXTBASE_CONFIG) does not exist.") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(f"The settings file {path} cannot be read: {error}") from None


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Variables that look like ours but name no setting: most likely misspelt."""
    known = {setting.variable for setting in Settings.known().values()} | _OTHER_VARIABLES
    return sorted(name for name in environment if name.startswith(ENV_PREFIX) and name not in known)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """What is set and not empty. Names may be in lower case, too."""
    given = {name.upper(): value for name, value in environment.items() if value}
    return {
        name: _parsed(setting, given[setting.variable])
        for name, setting in Settings.known().items()
        if setting.variable in given
    }


def _parsed(setting: KnownSetting, value: str) -> Any:
    if get_origin(setting.info.annotation) is not tuple:
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise InvalidSettings(_wrong(setting, 'must be JSON, for example ["/opt/tools"]')) from None


def _wrong(setting: KnownSetting, reason: str) -> str:
    return f"The setting '{setting.name}' ({setting.variable}) is wrong: {reason}."


def _first_problem(error: ValidationError) -> str:
    # Only location and reason: the input itself may be a secret.
    problem = error.errors(include_input=False, include_url=False)[0]
    [setting] = [one for one in Settings.known().values() if problem["loc"][: len(one.place)] == one.place]
    return _wrong(setting, problem["msg"].removeprefix("Value error, "))
