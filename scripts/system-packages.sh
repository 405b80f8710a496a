#!/bin/sh
# Installs the system programs the tests use, when we may; otherwise says which command would.
set -eu
missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need git git
need bwrap bubblewrap
# A file system whose files share blocks, in a file of the tests' own.
need mkfs.xfs xfsprogs
# A program of others that makes files in a workspace.
need ffmpeg ffmpeg
# The oldest PostgreSQL we support is what Debian stable has; the bundled one is newer.
set -- /usr/lib/postgresql/*/bin/postgres
[ -x "$1" ] || need postgres postgresql
# An engine for containers; the tests start one of their own, and need no command line of it.
need dockerd docker.io
# A browser for the web workbench.
need chromium chromium

[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  apt-get update -qq
  case $missing in *postgresql*)
    # No cluster of the system's own: the tests make theirs.
    mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf ;;
  esac
  # shellcheck disable=SC2086 # a list of package names
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
elif command -v apt-get >/dev/null 2>&1; then
  echo "Some tests will be skipped; to run them all: sudo apt-get install$missing" >&2
else
  echo "Some tests will be skipped; install with your package manager:$missing" >&2
fi
