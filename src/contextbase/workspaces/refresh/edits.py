"""A refresh in the folder itself, while the agent and its programs may be at work in it.

First everything is staged, then the journal is written down elsewhere, then each step is one rename. So what lies in
these two places tells, whenever the process was killed, whether a step was done: and with it, which of two versions the
agent's later edits of a file were made from.

.contextbase/tmp/<journal>/<step>         a new file, until it is put in its place
.contextbase/replaced/<journal>-<step>-…  the new version of a file, until it is exchanged for the old one. Then that
                                          lies here, and a program that has it open still writes to it
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from contextbase.durable import FULL
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.editor import ADDED, REPLACED, TEMPORARY, FolderEditor, content_at
from contextbase.workspaces.folder import hash_of, listing_of, open_file_in, remove_tree
from contextbase.workspaces.in_the_way import IN_THE_WAY
from contextbase.workspaces.model import FolderContent
from contextbase.workspaces.ports import LocalContent
from contextbase.workspaces.refresh.journal import RefreshJournal, RefreshStep
from contextbase.workspaces.refresh.plan import KeptReason
from contextbase.workspaces.syscalls import Rename, is_open_for_writing, rename

__all__ = ["MayBeShown", "Outcome", "StagedEdits", "clear_leftovers"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_OPENING: Final = 10.0
"""Seconds after which nobody is still about to open a file that was replaced by then."""
_LONGEST_FILLING: Final = 3600.0
"""Seconds after which nobody still fills a folder that nothing was put into by then."""

MayBeShown = Callable[[TreePath], bool]
Outcome = KeptReason | None
"""Why the folder was left as it was; None: the step is done."""


class StagedEdits:
    """The steps of one journal in one folder; every method blocks."""

    def __init__(self, editor: FolderEditor, journal: RefreshJournal) -> None:
        self._editor = editor
        self._journal = journal

    def stage(self, sources: Mapping[int, LocalContent]) -> dict[int, KeptReason]:
        """Write what the steps will put in place, durably; returns the steps for which that cannot be done."""
        failed: dict[int, KeptReason] = {}
        with self._editor.own_folder(self._staging) as staging, self._editor.own_folder(REPLACED) as replaced:
            for step in self._journal.steps:
                content = step.content
                if content is None or content.kind is Kind.DIRECTORY:
                    continue
                name = str(step.number)
                try:
                    self._editor.write_entry(staging, name, content, sources[step.number])
                    if _is_leaf(step.expected):  # whole: a half of it there would be taken for the agent's
                        rename(name, self._name(step), Rename.NOREPLACE, source_folder=staging, target_folder=replaced)
                except OSError as error:
                    if error.errno not in IN_THE_WAY:
                        raise
                    failed[step.number] = _reason_of(error)
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=staging)
        self._editor.sync()
        return failed

    def carry_out(self, may: MayBeShown) -> dict[int, Outcome]:
        """Do every step that is not done yet, unless its path `may` not be shown any more. Durable when it returns."""
        steps = self._journal.steps
        outcomes = {step.number: self._outcome(step, may=may) for step in steps if step.content is None}
        for folder in self._journal.emptied:  # before what comes: a file may take the place of a folder
            with contextlib.suppress(OSError):  # not empty, or not there
                self._editor.remove_folder(folder)
        outcomes |= {step.number: self._outcome(step, may=may) for step in steps if step.content is not None}
        self._editor.sync()
        return outcomes

    def clear(self, outcomes: Mapping[int, Outcome]) -> None:
        """Remove what was staged for steps that were not done. Only after the journal has ended: until then it tells
        that they were not."""
        with contextlib.suppress(OSError), self._editor.own_folder(REPLACED) as replaced:
            for step in self._journal.steps:
                if outcomes.get(step.number) is not None and content_at(replaced, self._name(step)) == step.content:
                    with contextlib.suppress(OSError):
                        os.unlink(self._name(step), dir_fd=replaced)
        with contextlib.suppress(OSError), self._editor.own_folder(TEMPORARY) as temporary:
            _remove_staging(temporary, self._journal.id)

    @property
    def _staging(self) -> str:
        return f"{TEMPORARY}/{self._journal.id}"

    def _name(self, step: RefreshStep) -> str:
        """In `replaced`: with the hashes of what may lie there and holds nothing of the agent's."""
        hashes = (content.hash for content in (step.expected, step.content) if content is not None)
        return "-".join((self._journal.id, str(step.number), *(str(name) for name in hashes if name is not None)))

    def _outcome(self, step: RefreshStep, *, may: MayBeShown) -> Outcome:
        try:
            return self._do(step, may=may(step.path))
        except OSError as error:
            if error.errno not in IN_THE_WAY:
                raise
            return _reason_of(error)

    def _do(self, step: RefreshStep, *, may: bool) -> Outcome:
        if _is_leaf(step.expected):
            if _is_leaf(step.content):
                return self._exchange(step, may=may)
            outcome = self._take_out(step, step.expected)
            if outcome is None and step.content is not None:
                self._editor.make_folder(step.path)
            return outcome
        if _is_leaf(step.content):
            return self._put_new(step, may=may)
        if step.content is not None:
            self._editor.make_folder(step.path)
        else:
            self._leave_folder(step.path)
        return None

    def _exchange(self, step: RefreshStep, *, may: bool) -> Outcome:
        name = self._name(step)
        with self._editor.own_folder(REPLACED) as replaced:
            staged = content_at(replaced, name)
            if staged is None or staged == step.content:
                with self._editor.parent_of(step.path, make=False) as parent:
                    if staged is None:  # nothing tells what happened but the file itself
                        return None if content_at(parent, step.path.name) == step.content else KeptReason.IN_THE_WAY
                    if not may:
                        return KeptReason.IN_THE_WAY
                    if _is_in_use(parent, step.path.name):
                        return KeptReason.IN_USE
                    rename(name, step.path.name, Rename.EXCHANGE, source_folder=replaced, target_folder=parent)
            if content_at(replaced, name) == step.expected:
                return None
            # The agent wrote to it before it was taken out, or a program writes on in it: it goes back, unless what
            # took its place was written to as well.
            with self._editor.parent_of(step.path, make=False) as parent:
                if content_at(parent, step.path.name) != step.content:
                    return None
                rename(name, step.path.name, Rename.EXCHANGE, source_folder=replaced, target_folder=parent)
        return KeptReason.IN_THE_WAY

    def _take_out(self, step: RefreshStep, expected: FolderContent | None) -> Outcome:
        name = self._name(step)
        with self._editor.own_folder(REPLACED) as replaced:
            if not _exists(replaced, name):
                try:
                    with self._editor.parent_of(step.path, make=False) as parent:
                        if _is_in_use(parent, step.path.name):
                            return KeptReason.IN_USE
                        rename(step.path.name, name, Rename.NOREPLACE, source_folder=parent, target_folder=replaced)
                except FileNotFoundError:
                    return None  # the agent deleted it, too
            if content_at(replaced, name) == expected:
                return None
            with contextlib.suppress(FileExistsError), self._editor.parent_of(step.path, make=True) as parent:
                rename(name, step.path.name, Rename.NOREPLACE, source_folder=replaced, target_folder=parent)
                return KeptReason.IN_THE_WAY
        return None

    def _put_new(self, step: RefreshStep, *, may: bool) -> Outcome:
        name = str(step.number)
        with self._editor.own_folder(TEMPORARY) as temporary, _opened(temporary, self._journal.id) as staging:
            if staging is not None and not _exists(staging, name):
                return None  # it was put in its place before
            with self._editor.parent_of(step.path, make=staging is not None and may) as parent:
                if staging is None or not may:
                    return None if content_at(parent, step.path.name) == step.content else KeptReason.IN_THE_WAY
                if step.expected is not None:
                    with contextlib.suppress(FileNotFoundError):
                        os.rmdir(step.path.name, dir_fd=parent)
                try:
                    rename(name, step.path.name, Rename.NOREPLACE, source_folder=staging, target_folder=parent)
                except FileExistsError:
                    return None if content_at(parent, step.path.name) == step.content else KeptReason.IN_THE_WAY
        return None

    def _leave_folder(self, path: TreePath) -> None:
        """Nothing in the tree needs it any more; it stays if there is something in it."""
        try:
            self._editor.remove_folder(path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise


def clear_leftovers(editor: FolderEditor) -> None:
    """Remove what refreshes and merges have left: what was staged for one that was never begun, and what was replaced
    and holds nothing new, once no program can write to it any more. Not while a journal is open."""
    with contextlib.suppress(OSError), editor.own_folder(TEMPORARY) as temporary:
        filled = time.time() - _LONGEST_FILLING
        for name, status in listing_of(temporary):
            if stat.S_ISDIR(status.st_mode) and (status.st_mtime < filled or not name.startswith(ADDED)):
                with contextlib.suppress(OSError):
                    remove_tree(Path(f"/proc/self/fd/{temporary}/{name}"))
    with contextlib.suppress(OSError), editor.own_folder(REPLACED) as replaced:
        before = time.time() - _LONGEST_OPENING
        for name, status in listing_of(replaced):
            if status.st_ctime < before and "-" in name:
                with contextlib.suppress(OSError):
                    if _holds_nothing_new(replaced, name, status):
                        os.unlink(name, dir_fd=replaced)


def _holds_nothing_new(replaced: int, name: str, status: os.stat_result) -> bool:
    if stat.S_ISLNK(status.st_mode):
        return str(ContentHash.of(os.readlink(os.fsencode(name), dir_fd=replaced))) in name.split("-")
    file = open_file_in(replaced, name)
    try:
        return not is_open_for_writing(file) and str(hash_of(file).hash) in name.split("-")
    finally:
        os.close(file)


def _remove_staging(temporary: int, name: str) -> None:
    with _opened(temporary, name) as staging:
        if staging is None:
            return
        for child, _ in listing_of(staging):
            os.unlink(child, dir_fd=staging)
    os.rmdir(name, dir_fd=temporary)


@contextlib.contextmanager
def _opened(folder: int, name: str) -> Iterator[int | None]:
    """A folder in an open one; None if there is none."""
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_leaf(content: FolderContent | None) -> bool:
    return content is not None and content.kind is not Kind.DIRECTORY


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_in_use(folder: int, name: str) -> bool:
    """Whether a program has the file open for writing: what it writes next must not end up where nobody looks."""
    try:
        file = open_file_in(folder, name)
    except OSError:  # a link, or nothing
        return False
    try:
        return is_open_for_writing(file)
    finally:
        os.close(file)


def _reason_of(error: OSError) -> KeptReason:
    return KeptReason.NO_ROOM if error.errno in FULL else KeptReason.IN_THE_WAY
