"""Files for people and agents, measured beside what others use: `python -m bench.files [--only tree] [--json]`.

`mcp_read_ms` is a read of a small file by `contextbase mcp` and a server on this machine, from question to answer;
`fs_server_read_ms` the same in the official MCP file server, which reads a plain folder. Medians, asked in turns.

`list_ms`, `tree_ms` and `info_ms` are answers over HTTP about a workspace of 100,000 files (`project_…`: about the
project), each right after a file was written: a folder of 1,000 files, all folders, the sums. `scandir_ms` is
`os.scandir` with a stat of each file of that folder, `find_ms` is `find -type d` over the whole workspace.

A file of 1 GiB goes up (as a form) and down by curl: into a workspace (`upload_mb_s`, `download_mb_s`) and a project
(`project_…`), on the disk when the answer comes. The ratios are over `cp` and an fsync of the same file.

Then a tree of 20,000 files, 100 MB, is committed and indexed. A word that 30 files have is looked for by the server
(`search_ms`, in its own process), by `git grep` in a folder with the same files (`git_grep_ms`) and by ripgrep (null
where there is none); medians, with everything in memory. `landing_with_index_ratio` is how many commits a second land
while they are indexed, over how many do so without.
"""

import argparse
import json
from collections.abc import Callable
from typing import Any

from bench.files_mcp import measure_mcp
from bench.files_search import measure_search
from bench.files_transfer import measure_transfer
from bench.files_tree import measure_tree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="reads by each program")
    parser.add_argument("--tree", type=int, default=100_000, help="files that are listed")
    parser.add_argument("--mebibytes", type=int, default=1024, help="of the file that goes up and down")
    parser.add_argument("--files", type=int, default=20_000, help="that are searched")
    parser.add_argument("--seconds", type=float, default=10.0, help="of commits with the index, and without")
    parser.add_argument("--only", choices=["mcp", "tree", "transfer", "search"], help="one part alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "mcp": lambda: dict(measure_mcp(rounds=options.rounds)),
        "tree": lambda: dict(measure_tree(options.tree)),
        "transfer": lambda: dict(measure_transfer(options.mebibytes)),
        "search": lambda: dict(measure_search(options.files, options.seconds)),
    }
    figures: dict[str, Any] = {}
    for name, measure in parts.items():
        if options.only in (None, name):
            figures |= measure()
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:34} {value}")


if __name__ == "__main__":
    main()
