"""Looking at folders from async tests, where a blocking look is of no harm."""

from pathlib import Path

__all__ = ["below", "folders_below"]


def below(folder: Path) -> list[Path]:
    """Everything below a folder, at any depth; nothing when it is not there."""
    return sorted(folder.rglob("*"))


def folders_below(folder: Path) -> list[Path]:
    return [path for path in below(folder) if path.is_dir()]
