# Generated from aio/search.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Files by name and by content, as a part of the clients: `client.search`."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.sdk.http import Body
from contextbase.wire.search import ContentMatchPage, NameMatchPage

__all__ = ["Search"]

_API: Final = "/api/v1"


class Search:
    """In a snapshot of a project or, with `workspace`, in the folder of an open workspace as it is now.

    A workspace is named by its id, by `agent:NAME` or by `me`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    def grep(
        self,
        project: str,
        pattern: str,
        *,
        regex: bool = False,
        ignore_case: bool = False,
        whole_word: bool = False,
        path: str | None = None,
        globs: Sequence[str] = (),
        context: int = 0,
        per_file: int | None = None,
        at: str = "",
        workspace: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> ContentMatchPage:
        """Lines of files that match. Pass the page's `cursor` for the next page: a page may be short or empty and still
        have one. Raises `InvalidInput` for a regular expression that RE2 does not know."""
        return self._read(
            ContentMatchPage,
            "contents",
            workspace,
            project=project,
            pattern=pattern,
            regex=regex,
            ignore_case=ignore_case,
            whole_word=whole_word,
            path=path,
            glob=list(globs) or None,
            context=context,
            per_file=per_file,
            at=at or None,
            cursor=cursor,
            limit=limit,
        )

    @checked
    def find(
        self,
        project: str,
        name: str = "",
        *,
        path: str | None = None,
        globs: Sequence[str] = (),
        at: str = "",
        workspace: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> NameMatchPage:
        """Files and links whose path has the words of `name`, or whose name has its letters in this order; the best
        first. Without a name: all that the patterns match."""
        return self._read(
            NameMatchPage,
            "names",
            workspace,
            project=project,
            name=name or None,
            path=path,
            glob=list(globs) or None,
            at=at or None,
            cursor=cursor,
            limit=limit,
        )

    def _read(self, answer: type[Body], what: str, workspace: str | None, **query: Any) -> Body:
        place = "" if workspace is None else f"/workspaces/{quote(workspace, safe='')}"
        return self._connection.read(answer, f"{_API}{place}/search/{what}", **query)
