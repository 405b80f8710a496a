# ruff: noqa: A005 - a module of the package `bench`, which nobody imports from elsewhere
"""The platform: what people and apps cost.

    python -m bench.platform [--apps 500] [--users 5000] [--files 1000] [--changes 100] [--rounds 30]
                             [--bindings 10000] [--without-docker] [--json]

Each figure is a median.

What is compared with `tar` over `docker cp` is measured by turns with it, on one disk:

restore_1000_files_ms   A new session of an app gets its folder: the rows and the mount of its workspace, the plan of
                        the manifest, the template's files out of the database, skills, the user's own files, and all
                        of it on the disk (syncfs). The session was asked for before; no sandbox is started, and
                        nothing is committed.
docker_cp_in_ms         As many files of the same size, read from a folder and packed by this process, until `docker
                        cp - CONTAINER:/workspace` has ended. The container is new and runs already. Nothing is flushed.
plain_copy_ms           As many files copied one by one into a new folder. Nothing is flushed.
sync_100_changes_ms     Changes to some of the files are found, committed, and a snapshot of the session is taken.
docker_cp_out_ms        All files out of the container, and unpacked into a new folder.
restore_lost_folder_ms  As the first, after the session's folder was stored and removed: its files are not committed,
                        and come from its snapshot. Right after many files were removed from that disk.
"""

import argparse
import json
from contextlib import ExitStack

from tests.support.postgres import reachable_folder

from bench.platform_apps import CONTENT, measure_apps
from bench.platform_copies import other_copies
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
    with reachable_folder(in_memory=False) as folder, ExitStack() as stack:
        copies = None
        if not options.without_docker:
            copies = stack.enter_context(other_copies(folder / "copies", files=options.files, content=CONTENT))
        figures = measure_apps(
            folder / "apps",
            apps=options.apps,
            users=options.users,
            files=options.files,
            changes=options.changes,
            rounds=options.rounds,
            copies=copies,
        )
        figures |= measure_people(bindings=options.bindings, rounds=options.rounds)
        figures |= measure_leaving(folder / "leaving", rounds=options.rounds)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for name, figure in figures.items():
        print(f"{name:32} {figure:10.2f}")


if __name__ == "__main__":
    main()
