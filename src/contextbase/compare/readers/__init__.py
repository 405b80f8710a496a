"""Structured files as values. Each reader raises `Unstructured` for what it cannot be sure of."""

from collections.abc import Callable, Mapping
from typing import Final

from contextbase.compare.readers.json import read_json, read_json_lines
from contextbase.compare.readers.toml import read_toml
from contextbase.compare.readers.yaml import read_yaml
from contextbase.compare.values import ValueNode
from contextbase.merge.budget import Budget
from contextbase.merge.sniff import FileType

__all__ = ["READERS"]

READERS: Final[Mapping[FileType, Callable[[str, Budget], ValueNode]]] = {
    FileType.JSON: read_json,
    FileType.JSON_LINES: read_json_lines,
    FileType.NOTEBOOK: read_json,
    FileType.TOML: read_toml,
    FileType.YAML: read_yaml,
}
