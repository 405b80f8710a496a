# ruff: noqa: A005 - a module of the package `bench`, which nobody imports from elsewhere
"""The platform: what people and apps cost.

    python -m bench.platform [--apps 500] [--users 5000] [--files 1000] [--changes 100] [--rounds 30]
                             [--bindings 10000] [--without-docker] [--json]

Each figure is a median.
"""

import argparse
import json

from tests.support.postgres import reachable_folder

from bench.platform_apps import measure_apps, measure_docker_copies
from bench.platform_people import measure_leaving, measure_people


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apps", type=int, default=500)
    parser.add_argument("--users", type=int, default=5000)
    parser.add_argument("--files", type=int, default=1000, help="of a session")
    parser.add_argument("--changes", type=int, default=100, help="in a session")
    parser.add_argument("--bindings", type=int, default=10_000, help="roles of one person")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--without-docker", action="store_true", help="leave out what is compared with it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with reachable_folder(in_memory=False) as folder:
        figures = measure_apps(
            folder / "apps",
            apps=options.apps,
            users=options.users,
            files=options.files,
            changes=options.changes,
            rounds=options.rounds,
        )
        figures |= measure_people(bindings=options.bindings, rounds=options.rounds)
        figures |= measure_leaving(folder / "leaving", rounds=options.rounds)
        if not options.without_docker:
            figures |= measure_docker_copies(folder / "copies", files=options.files)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, figure in figures.items():
        print(f"{name:32} {figure:10.2f}")


if __name__ == "__main__":
    main()
