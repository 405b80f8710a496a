"""Workers, and somebody without a sandbox, on the same files in any order: every line that was written is somewhere."""

import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sandboxes import Site

from contextbase.errors import Conflict
from contextbase.standalone import WorkerSandbox

_FILES = ["a.txt", "b/c.md"]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["one", "two", "three", "somebody"]),
        st.sampled_from(["write", "write", "write", "sync", "sync", "copy", "delete"]),
        st.sampled_from(_FILES),
        st.integers(0, 9),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(steps=_STEPS)
def test_every_line_is_in_the_base_folder_or_kept_beside_it(steps: list[tuple[str, str, str, int]]) -> None:
    with TemporaryDirectory() as folder:
        site = Site(Path(folder))
        for name in _FILES:
            site.put(name, "".join(f"{number}\n" for number in range(10)))
        workers = {name: site.worker(name, "**") for name in ("one", "two", "three")}
        try:
            _follow(steps, site, workers)
        finally:
            site.close()


def _follow(steps: list[tuple[str, str, str, int]], site: Site, workers: dict[str, WorkerSandbox]) -> None:
    places = {name: worker.path for name, worker in workers.items()} | {"somebody": site.base}
    lines: set[str] = set()
    for number, (who, action, name, position) in enumerate(steps):
        file = places[who] / name
        if action == "write":
            line = f"{who} wrote {number}"
            lines.add(line)
            _insert(file, line, position)
        elif action == "delete":
            lines -= _lines(file)  # whoever deletes has seen them
            file.unlink(missing_ok=True)
        elif who in workers and action == "sync":
            assert not workers[who].sync_back().failed
        elif who in workers and (site.base / name).exists():
            _copy(workers[who], name)
    for worker in workers.values():
        assert not worker.sync_back().failed
        assert worker.unsynced() == []
    kept = [path for path in (site.base / ".contextbase/conflicts").rglob("*") if path.is_file()]
    found = set().union(*map(_lines, [*kept, *(site.base / name for name in _FILES)]))
    assert lines <= found


def _insert(file: Path, line: str, position: int) -> None:
    """As editors do: a new file in the place of the old one."""
    text = file.read_text().splitlines() if file.exists() else []
    text.insert(min(position, len(text)), line)
    file.parent.mkdir(exist_ok=True)
    draft = file.with_name("draft")
    draft.write_text("\n".join(text) + "\n")
    draft.rename(file)


def _copy(worker: WorkerSandbox, name: str) -> None:
    with contextlib.suppress(Conflict):  # its own changes would be lost
        worker.copy(name)


def _lines(file: Path) -> set[str]:
    return set(file.read_text().splitlines()) if file.exists() else set()
