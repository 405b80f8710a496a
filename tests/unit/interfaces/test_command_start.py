"""What a command costs before it does anything."""

import subprocess
import sys


def test_a_command_that_talks_to_a_server_does_not_load_one() -> None:
    script = "import sys, contextbase.interfaces.cli.main; print('contextbase.bootstrap' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_other_command_loads_what_workers_need() -> None:
    script = "import sys, contextbase.interfaces.cli.main; print('contextbase.merge' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
