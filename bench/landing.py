"""How many commits land in one project: `python -m bench.landing --agents 50 --seconds 30 --conflicts 0.2 [--json]`.

N agents commit as fast as they are answered: over HTTP to a real server (clients in a process of their own), in
process, and with git (N clones, push, on reject fetch and rebase, up to 20 tries). Path rules, merge rules, audit,
merges and fsync are on. A *land* is a request that got its own seq and whose values are in the head; a *conflict* is a
planned edit of a line or key that everybody edits. Afterwards every acknowledged change is read again: `lost`.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

import uvloop
from tests.support.postgres import reachable_folder

from bench.landing_git import measure_git
from bench.landing_http import measure_http
from bench.landing_process import measure_in_process
from bench.landing_tree import measure_trees


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--agents", type=int, default=50)
    options.add_argument("--seconds", type=float, default=10.0, help="of each measurement, after the warm-up")
    options.add_argument("--conflicts", type=float, default=0.2, help="share of edits that are planned to conflict")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--only", choices=["http", "process", "git"], help="measure one of the three")
    options.add_argument("--servers", type=int, default=1, help="how many answer over HTTP, on one database")
    options.add_argument(
        "--tree-files", type=int, nargs="+", metavar="N",
        help="measure instead what a commit costs in projects of so many files, such as 10000 1000000",
    )  # fmt: skip
    arguments = options.parse_args()
    chosen = [arguments.only] if arguments.only else ["http", "process", "git"]
    if arguments.tree_files:
        chosen = ["trees"]
    figures: dict[str, float] = {}
    load = (arguments.agents, arguments.seconds, arguments.conflicts)
    if "http" in chosen:
        say("over HTTP")
        with reachable_folder(in_memory=False) as folder:
            figures |= asyncio.run(measure_http(folder, *load, servers=arguments.servers))
    if "process" in chosen:
        say("in process")
        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)  # as the server has it
        with reachable_folder(in_memory=False) as folder, runner:
            figures |= runner.run(measure_in_process(folder, *load))
    if "trees" in chosen:
        say("large trees")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures |= runner.run(measure_trees(arguments.tree_files, arguments.agents, arguments.seconds))
    if "git" in chosen:
        say("git")
        with tempfile.TemporaryDirectory() as name:
            figures |= measure_git(Path(name), *load)
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, figure in figures.items():
            print(f"{name:32}{figure:>14,.1f}")


def say(text: str) -> None:
    print(f"measuring {text} …", file=sys.stderr)


if __name__ == "__main__":
    main()
