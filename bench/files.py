"""Files for people and agents, measured beside what others use: `python -m bench.files [--rounds 300] [--json]`.

`mcp_read_ms` is a read of a small file by `contextbase mcp` and a server on this machine, from question to answer;
`fs_server_read_ms` the same in the official MCP file server, which reads a plain folder. Medians, asked in turns.
"""

import argparse
import json

from bench.files_mcp import measure_mcp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="reads by each program")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure_mcp(rounds=options.rounds)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:34} {value}")


if __name__ == "__main__":
    main()
