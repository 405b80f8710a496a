"""Files for people and agents, measured beside what others use: `python -m bench.files [--rounds 300] [--json]`.

`mcp_read_ms` is a read of a small file by `contextbase mcp` and a server on this machine, from question to answer;
`fs_server_read_ms` the same in the official MCP file server, which reads a plain folder. Medians, asked in turns.

Then a tree of 20,000 files, 100 MB, is committed and indexed. A word that 30 files have is looked for by the server
(`search_ms`, in its own process), by `git grep` in a folder with the same files (`git_grep_ms`) and by ripgrep (null
where there is none); medians, with everything in memory. `landing_with_index_ratio` is how many commits a second land
while they are indexed, over how many do so without.
"""

import argparse
import json

from bench.files_mcp import measure_mcp
from bench.files_search import measure_search


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="reads by each program")
    parser.add_argument("--files", type=int, default=20_000, help="that are searched")
    parser.add_argument("--seconds", type=float, default=10.0, help="of commits with the index, and without")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure_mcp(rounds=options.rounds) | measure_search(options.files, options.seconds)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:34} {value}")


if __name__ == "__main__":
    main()
