"""Conversations with agents: what we add to an agent program, and how quickly people see what it does.

    python -m bench.agents [--rounds 10] [--sessions 100] [--words 60] [--events 10000] [--json]

`first_token_added_ms`: from the message to the first word of each agent program in a warm session, less what the bare
program takes with the same model; done in turns, and both programs wait for the next one. `event_lag_p99_ms`: from the
moment an agent says something to the moment a reader has it, while all sessions stream at once;
`starting_event_lag_p99_ms`: while some of them are still being started. `replay_10k_events_ms`: the history of a run
that has so many events.
`resume_after_restart_ms`: from a server that is ready again after a kill to the next word of a run that went on
meanwhile. `rewind_ms`: a conversation back to an earlier message, with its files.
"""

import argparse
import json

from tests.support.postgres import reachable_folder

from bench.agents_first_token import measure_first_token
from bench.agents_replay import measure_replay
from bench.agents_streams import measure_streams


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=100, help="that stream at once")
    parser.add_argument("--words", type=int, default=200, help="that each of them says, four a second")
    parser.add_argument("--events", type=int, default=10_000, help="of the run that is replayed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: dict[str, object] = {}
    with reachable_folder(in_memory=False) as folder:
        figures |= measure_first_token(folder / "first", rounds=options.rounds)
        figures |= measure_streams(folder / "streams", sessions=options.sessions, words=options.words)
        figures |= measure_replay(folder / "replay", events=options.events, rounds=options.rounds)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, figure in figures.items():
        print(f"{name:28} {figure}")


if __name__ == "__main__":
    main()
