"""The formats the engine can take apart, strictest first for each file type. A new one joins by a line here."""

from collections.abc import Mapping
from typing import Final

from contextbase.merge.formats.changelog import ChangelogFormat
from contextbase.merge.formats.ini import IniFormat
from contextbase.merge.formats.json import JsonFormat
from contextbase.merge.formats.jsonl import JsonLinesFormat
from contextbase.merge.formats.lineset import LineSetFormat
from contextbase.merge.formats.markdown import MarkdownFormat
from contextbase.merge.formats.notebook import NotebookFormat
from contextbase.merge.formats.table import TableFormat
from contextbase.merge.formats.toml import TomlFormat
from contextbase.merge.formats.yaml import YamlFormat
from contextbase.merge.ports import Format
from contextbase.merge.sniff import FileType

__all__ = ["FORMATS", "PROSE"]

FORMATS: Final[Mapping[FileType, tuple[Format, ...]]] = {
    FileType.JSON: (JsonFormat(with_comments=False), JsonFormat(with_comments=True)),
    FileType.JSON_LINES: (JsonLinesFormat(),),
    FileType.NOTEBOOK: (NotebookFormat(),),
    FileType.YAML: (YamlFormat(),),
    FileType.TOML: (TomlFormat(),),
    FileType.MARKDOWN: (MarkdownFormat(),),
    FileType.CHANGELOG: (ChangelogFormat(),),
    FileType.INI: (IniFormat(),),
    FileType.TABLE: (TableFormat(),),
    FileType.LINE_SET: (LineSetFormat(),),
}

PROSE: Final = frozenset({FileType.MARKDOWN, FileType.CHANGELOG})
"""Where lines stand for themselves: what merges by line stands, and only the rest is taken apart. Of keys and elements
all are looked at: one may have been moved from here to there."""
