"""Settings: read once, at the edge. Environment (`CONTEXTBASE_*`) beats the TOML file, which beats the defaults."""

from contextbase.config.groups import BlobLocation
from contextbase.config.loading import load_settings, read_settings_file, unknown_variables
from contextbase.config.settings import ENV_PREFIX, Setting, Settings

__all__ = [
    "ENV_PREFIX",
    "BlobLocation",
    "Setting",
    "Settings",
    "load_settings",
    "read_settings_file",
    "unknown_variables",
]
