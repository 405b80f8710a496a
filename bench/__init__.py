"""Side-by-side benchmarks: `python -m bench.NAME [--json]`."""

import atexit
import os
import shutil
import tempfile

# Servers of benchmarks are not among those that this account's commands find.
_STATE = tempfile.mkdtemp(prefix="contextbase-bench-state-")
os.environ["XDG_STATE_HOME"] = _STATE
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)
