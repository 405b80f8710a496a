"""Storage, measured: `python -m bench.storage [--json]`.

Blobs: puts/s and MB/s of the local folder next to plain files written and flushed, and of S3 next to bare HTTP PUTs
(against a real S3 server on this machine). Tree: a folder's listing, a diff of neighbouring snapshots and other reads
in projects of 1 thousand, 100 thousand and 1 million files. Everything in one run: compare within it.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.support.postgres import reachable_folder
from tests.support.s3_server import running_s3_server

from bench.blob_stores import measure_local, measure_s3
from bench.tree_reads import measure_tree_reads

Figures = dict[str, dict[str, float]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--folder", type=Path, help="measure the disk of this folder; default: the temp folder's")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        say("blobs in the local folder")
        local = asyncio.run(measure_local(folder))
        say("blobs in S3")
        (folder / "s3").mkdir()
        with running_s3_server(folder / "s3") as server:
            s3 = asyncio.run(measure_s3(server.connection(prefix="bench"), folder / "spool"))
    with reachable_folder() as folder:
        say("tree reads (the project of 1 million files takes a minute to make)")
        tree = asyncio.run(measure_tree_reads(folder))
    result = {"blobs": {"local": local, "s3": s3}, "tree": tree}
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        show("Local blobs", local)
        show("S3 blobs", s3)
        show("Tree reads by number of files (ms)", tree)


def say(text: str) -> None:
    print(f"measuring {text} …", file=sys.stderr)


def show(title: str, figures: Figures) -> None:
    """Rows are measures, columns are what was measured."""
    names = list(figures)
    print(f"\n{title}\n{'':34}" + "".join(f"{name:>24}" for name in names))
    for measure in figures[names[0]]:
        print(f"{measure:34}" + "".join(f"{figures[name][measure]:>24,}" for name in names))


if __name__ == "__main__":
    main()
