"""Commands of agents from the command line."""

import re
from collections import Counter

import pytest
from tests.support.cli import Cli
from tests.support.require import require_program, require_root

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(autouse=True)
def sandboxes() -> None:
    require_root()
    require_program("bwrap", "apt-get install bubblewrap")


def test_what_could_not_be_committed_is_told_with_the_name_of_the_agent_that_has_it(cb: Cli) -> None:
    done = cb("run", "--", "sh", "-c", "mkfifo pipe; echo new > new.txt")
    assert done.code == 1, done.stderr
    named = re.search(r"contextbase workspace status\|complete\|abandon --agent (run-\w+)", done.stderr)
    assert named is not None, done.stderr
    assert "pipe" in cb("workspace", "status", "--agent", named[1]).stdout
    assert cb("workspace", "complete", "--agent", named[1], "--discard").code == 0


def test_of_twenty_agents_on_one_line_those_that_are_not_in_wait_for_a_person(cb: Cli) -> None:
    script = "sleep 2; echo $CONTEXTBASE_RUN_INDEX > line.txt; echo mine > own-$CONTEXTBASE_RUN_INDEX.txt"
    done = cb("run", "-n", "20", "--agent", "many", "--json", "--", "sh", "-c", script)
    assert done.code == 1, done.stderr
    changes: Counter[str] = Counter()
    for one in done.json:
        assert one["error"] is None
        changes.update(one["changes"])
    assert set(changes) == {"written", "in_review"}
    assert changes.total() == 40
    assert [one["went_well"] for one in done.json].count(False) == changes["in_review"]
    assert len(cb("review", "list", "--json").json) == changes["in_review"]
