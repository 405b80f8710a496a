#!/bin/sh
# Makes the virtual environment in $1 and installs the pinned dependencies and this package (editable) into it.
set -eu
venv=$1
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "contextbase needs Python 3.11 or newer; '$python' is not. Name another with: make setup PYTHON=python3.12" >&2
  exit 2
fi

# Debian ships venv apart from Python: install it when we may, otherwise say how.
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"
  else
    echo "'$python' cannot make virtual environments. Install them first: sudo apt-get install $package" >&2
    exit 2
  fi
fi

echo "Installing into $venv (the first time this takes a minute or so) …"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
"$venv/bin/uv" pip sync --quiet --compile-bytecode --python "$venv/bin/python" --require-hashes requirements/dev.lock
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
