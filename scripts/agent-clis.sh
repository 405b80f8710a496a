#!/bin/sh
# Installs the agent programs that tests drive, the file server that bench.files measures beside ours, and the
# Lighthouse of bench.web, below a cache folder: pinned, and once for all. About 1.2 GB.
# usage: agent-clis.sh FOLDER [claude|codex|opencode|filesystem|lighthouse]...   (default: all but the last)
set -eu
folder=$1
shift
[ $# -gt 0 ] || set -- claude codex opencode filesystem
here=$(dirname "$0")/..
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9

npm_package() { # name, package@version
  name=$(printf %s "$2" | tr / -)
  [ -e "$folder/$1/.installed-$name" ] && return
  rm -rf "${folder:?}/$1"
  npm install --prefix "$folder/$1" --no-audit --no-fund --no-save --loglevel=error "$2" >&2
  touch "$folder/$1/.installed-$name"
}

for wanted in "$@"; do
  case $wanted in
    claude)
      if [ ! -e "$folder/claude/.installed-0.2.182" ]; then
        rm -rf "$folder/claude"
        "$here/.venv/bin/uv" pip install --quiet --no-deps --target "$folder/claude" claude-agent-sdk==0.2.182
        touch "$folder/claude/.installed-0.2.182"
      fi ;;
    codex) npm_package codex @openai/codex@0.166.0 ;;
    opencode) npm_package opencode opencode-ai@1.18.33 ;;
    filesystem) npm_package filesystem @modelcontextprotocol/server-filesystem@2026.8.31 ;;
    lighthouse) npm_package lighthouse lighthouse@12.8.2 ;;
    *) echo "unknown: $wanted" >&2; exit 2 ;;
  esac
done
