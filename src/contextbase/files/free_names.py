"""Names for a file that must not take another's place: `data.csv`, `data (1).csv`, `data (2).csv`. Pure."""

from collections.abc import Iterator
from itertools import count
from typing import Final

from contextbase.errors import InvalidPath
from contextbase.ids import MAX_PART_BYTES, TreePath

__all__ = ["file_name", "names_for", "numbered"]

_DOUBLE_SUFFIXES: Final = (".tar.bz2", ".tar.gz", ".tar.xz", ".tar.zst")


def names_for(name: str) -> Iterator[str]:
    """The name itself, then with numbers, without end."""
    yield name
    for number in count(1):
        yield numbered(name, number)


def numbered(name: str, number: int) -> str:
    """The number stands before the suffix. A stem that is too long for it loses its end."""
    stem, suffix = _split(name)
    ending = f" ({number}){suffix}"
    room = MAX_PART_BYTES - len(ending.encode())
    if room < 1:  # nearly all of the name is its suffix
        stem, ending = name, f" ({number})"
        room = MAX_PART_BYTES - len(ending)
    return stem.encode()[:room].decode(errors="ignore") + ending


def file_name(text: str) -> str:
    """The name of an uploaded file, as its sender gives it; raises `InvalidPath` unless it names a file in a folder."""
    path = TreePath(text)
    if path.parent is not None:
        raise InvalidPath(f"{text[:120]!r} is not a file's name: it has a '/'.", path=text[:120], rule="name")
    return str(path)


def _split(name: str) -> tuple[str, str]:
    for suffix in _DOUBLE_SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], name[-len(suffix) :]
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem.strip(".") else (name, "")
