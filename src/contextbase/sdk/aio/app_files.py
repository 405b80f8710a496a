"""Files of apps for people, as a part of the clients: `client.app_files`."""

from urllib.parse import quote

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.aio.uploads import AsyncUploadable, check_uploadable, pieces_of
from contextbase.sdk.arguments import checked
from contextbase.wire.app import AppFileChanged, AppFileList

__all__ = ["AsyncAppFiles"]


class AsyncAppFiles:
    """Knowledge of an app for whoever uses it, its templates for whoever manages it, and your own files and sessions.
    Every method raises `NotFound` for what you may not see."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def list(self, app: str, prefix: str, *, after: str = "", limit: int = 1000) -> AppFileList:
        """What is below a folder, such as `kb` or `project/default/kb`."""
        return await self._connection.read(AppFileList, _path(app), prefix=prefix, after=after, limit=limit)

    @checked
    async def read(self, app: str, path: str) -> bytes:
        """A file's content."""
        whole = bytearray()
        async with self._connection.stream(_path(app, path)) as response:
            async for piece in response.aiter_raw():
                whole += piece
        return bytes(whole)

    async def write(
        self, app: str, path: str, content: AsyncUploadable, *, if_match: str | None = None
    ) -> AppFileChanged:
        """Replace a file, or make it. `if_match`: the ETag that it must have, else `PreconditionFailed`."""
        check_uploadable(content)
        headers = None if if_match is None else {"If-Match": if_match}
        return await self._connection.call(AppFileChanged, "PUT", _path(app, path), pieces_of(content), headers=headers)

    @checked
    async def delete(self, app: str, path: str) -> AppFileChanged:
        """Its history stays."""
        return await self._connection.call(AppFileChanged, "DELETE", _path(app, path))


def _path(app: str, path: str | None = None) -> str:
    files = f"/api/v1/apps/{quote(app, safe='')}/files"
    return files if path is None else f"{files}/{quote(path, safe='/')}"
