"""Agents at work: what the ways out of a sandbox add, how quickly runs are claimed and begin.

    python -m bench.worker [--rounds 100] [--streams 50] [--runs 1000] [--turns 20] [--sessions 100] [--json]

Each figure is a median; what is compared is done in turns, in one run. `hundred_docker_cli_s` is what the Docker
command line takes to start as many containers, ten at a time, and to have each say a word.
"""

import argparse
import json

from tests.support.postgres import reachable_folder

from bench.worker_docker import measure_docker_cli
from bench.worker_gateway import measure_gateway
from bench.worker_queue import measure_queue
from bench.worker_sessions import measure_sessions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--streams", type=int, default=50, help="at once")
    parser.add_argument("--events", type=int, default=200, help="in one stream")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two events")
    parser.add_argument("--runs", type=int, default=1000, help="in the queue")
    parser.add_argument("--turns", type=int, default=20, help="of a session")
    parser.add_argument("--sessions", type=int, default=100, help="at once")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with reachable_folder(in_memory=False) as folder:
        figures = measure_gateway(
            folder / "data",
            rounds=options.rounds,
            streams=options.streams,
            events=options.events,
            pause_seconds=options.pause,
        )
        figures |= measure_queue(folder / "queue", runs=options.runs)
        figures |= measure_sessions(folder / "sessions", rounds=options.turns, sessions=options.sessions)
        figures |= measure_docker_cli(containers=options.sessions)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, figure in figures.items():
        print(f"{name:32} {figure:10.2f}")


if __name__ == "__main__":
    main()
