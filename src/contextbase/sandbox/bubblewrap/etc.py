"""The /etc that sandboxes see: what programs need to run, and nothing that says who we are or what we know."""

import shutil
import stat
from pathlib import Path
from typing import Final

from contextbase.workspaces.model import Owner

__all__ = ["make_etc"]

_TAKEN: Final = (
    "alternatives", "bash.bashrc", "ca-certificates", "crypto-policies", "debian_version", "fonts", "gai.conf",
    "host.conf", "inputrc", "java*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime",
    "login.defs", "lsb-release", "magic", "magic.mime", "mime.types", "nsswitch.conf", "os-release", "perl", "pki",
    "profile", "protocols", "python3*", "redhat-release", "services", "shells", "ssl", "terminfo", "timezone",
    "xattr.conf",
)  # fmt: skip
_LARGEST: Final = 4 << 20


def make_etc(place: Path, owner: Owner, *, host: Path = Path("/etc")) -> None:
    """Written again, so that it is as this machine is now. Running sandboxes keep the one that they have."""
    place.mkdir(mode=0o755, parents=True)
    for pattern in _TAKEN:
        for source in host.glob(pattern):
            _copy(source, place / source.name)
    accounts = f"root:x:0:0::/root:/bin/sh\nagent:x:{owner.uid}:{owner.gid}::/home/agent:/bin/sh\n"
    files = {
        "passwd": accounts + "nobody:x:65534:65534::/nonexistent:/bin/false\n",
        "group": f"root:x:0:\nagent:x:{owner.gid}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "hostname": "sandbox\n",
        "resolv.conf": "",
    }
    for name, text in files.items():
        (place / name).write_text(text, encoding="ascii")
    for path in (place, *place.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def _copy(source: Path, target: Path) -> None:
    status = source.lstat()
    if stat.S_ISLNK(status.st_mode):
        target.symlink_to(source.readlink())
    elif not status.st_mode & stat.S_IROTH:
        return  # not everybody's to read: keys are such
    elif stat.S_ISDIR(status.st_mode):
        target.mkdir()
        for below in source.iterdir():
            _copy(below, target / below.name)
    elif stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
        shutil.copyfile(source, target)
