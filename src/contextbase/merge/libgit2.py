"""The libgit2 inside the pygit2 wheel, through ctypes: pygit2 exposes neither its line merge nor its diff of two texts.

Who uses a function of it sets the types of that function, beside the structures it takes.
"""

import ctypes
import importlib.util
from ctypes.util import find_library
from pathlib import Path
from typing import Final

__all__ = ["libgit2"]


def _load() -> ctypes.CDLL:
    spec = importlib.util.find_spec("pygit2")
    places: list[str] = []
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        for folder in (package.parent / "pygit2.libs", package / ".dylibs", package):
            places += sorted(str(file) for file in folder.glob("libgit2*") if "_libgit2" not in file.name)
    places += filter(None, [find_library("git2")])
    if not places:
        raise ImportError("libgit2 was not found in the pygit2 wheel nor on the system; reinstall pygit2 from a wheel.")
    library = ctypes.CDLL(places[0])
    library.git_libgit2_init()
    return library


libgit2: Final = _load()
