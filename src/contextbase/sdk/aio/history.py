"""A project's past, as a part of the clients: `client.history`."""

from collections.abc import AsyncGenerator
from typing import Any, Final, Literal
from urllib.parse import quote

from contextbase.errors import InvalidInput
from contextbase.sdk.aio.reverting import AsyncReverting
from contextbase.sdk.arguments import checked
from contextbase.sdk.http import Body
from contextbase.sdk.options import ArchiveFormat
from contextbase.wire.blame import BlameView
from contextbase.wire.diff import DiffPageView, FileDiffView
from contextbase.wire.snapshot import SnapshotView, TagCreate, TagPage, TagView

__all__ = ["AsyncHistory"]

_HISTORY: Final = "/api/v1/history"


class AsyncHistory(AsyncReverting):
    """A project's past, and the way back.

    A ref is a seq, `head`, `head~3`, a time such as 2026-01-31T12:00:00Z, or a tag."""

    @checked
    async def resolve(self, project: str, ref: str = "head") -> int:
        """The seq of the snapshot that a ref means. Raises `NotFound` for a ref that means none."""
        return (await self._read(SnapshotView, "resolve", project=project, ref=ref)).seq

    @checked
    async def list_tags(self, project: str, *, after: str = "", limit: int = 100) -> TagPage:
        """The project's tags, by name. Pass the page's `next_after` as `after` for the next page."""
        return await self._read(TagPage, "tags", project=project, after=after, limit=limit)

    @checked
    async def create_tag(self, project: str, name: str, *, ref: str = "head", message: str = "") -> TagView:
        """Give a snapshot a name. Raises `Conflict` if the name is taken."""
        body = TagCreate(project=project, name=name, ref=ref, message=message)
        return await self._connection.call(TagView, "POST", f"{_HISTORY}/tags", body)

    @checked
    async def delete_tag(self, project: str, name: str) -> None:
        """Remove a tag; the snapshot stays. Raises `NotFound` if there is none."""
        if not name or name in (".", "..") or "/" in name:
            raise InvalidInput(f"{name[:120]!r} is not a tag's name.")
        await self._connection.done("DELETE", f"{_HISTORY}/tags/{quote(name, safe='')}", project=project)

    @checked
    async def diff(
        self,
        project: str,
        old: str | None = None,
        new: str = "head",
        *,
        commit: int | None = None,
        principal: str | None = None,
        run: str | None = None,
        path: str | None = None,
        after: str = "",
        limit: int = 100,
        context: int = 3,
        patch: bool = False,
    ) -> DiffPageView:
        """What differs between two snapshots, or what a commit, a principal or a run changed; with `patch` also as
        text. For the next page pass the page's `next_after` as `after`, with the page's own `old` and `new`."""
        return await self._read(
            DiffPageView,
            "diff",
            project=project,
            old=old,
            new=new,
            commit=commit,
            principal=principal,
            run=run,
            path=path,
            after=after,
            limit=limit,
            context=context,
            patch=patch,
        )

    @checked
    async def diff_versions(
        self, project: str, path: str, old: int, new: int | None = None, *, context: int = 3, patch: bool = False
    ) -> FileDiffView:
        """What differs between two versions of a file, by number; None: as it is now."""
        return await self._read(
            FileDiffView, "diff/versions", project=project, path=path, old=old, new=new, context=context, patch=patch
        )

    @checked
    async def blame(
        self,
        project: str,
        path: str,
        *,
        at: str = "head",
        by: Literal["lines", "parts"] = "lines",
        first: int = 1,
        limit: int = 10_000,
    ) -> BlameView:
        """Which version each line (or value, or cell: `by="parts"`) of a file comes from. For the next page pass the
        page's `next_line` as `first`."""
        return await self._read(BlameView, "blame", project=project, path=path, at=at, by=by, first=first, limit=limit)

    @checked
    async def archive(
        self, project: str, *, at: str = "head", path: str | None = None, form: ArchiveFormat = "tar"
    ) -> AsyncGenerator[bytes, None]:
        """A snapshot, or a part of it, as an archive, in pieces. Close it if you stop early (`contextlib.aclosing`)."""
        query: dict[str, Any] = {"project": project, "at": at, "path": path, "format": form}
        async with self._connection.stream(f"{_HISTORY}/archive", **query) as response:
            async for piece in response.aiter_raw():
                yield piece

    async def _read(self, answer: type[Body], route: str, **query: Any) -> Body:
        return await self._connection.read(answer, f"{_HISTORY}/{route}", **query)
