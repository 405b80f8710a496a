"""Files as resources: contextbase://PROJECT/PATH, of the place where the caller works."""

import base64
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types
from mcp.shared.exceptions import MCPError

from contextbase.errors import ContextbaseError, InvalidInput, NotFound, TooLarge
from contextbase.files.service import FileService
from contextbase.files.slices import part_of_content
from contextbase.ids import TreePath
from contextbase.interfaces.mcp.request import note_elsewhere, request_of
from contextbase.tools.places import place_files
from contextbase.tools.service import ToolService

__all__ = ["Resources", "path_of", "uri_of"]

_SCHEME: Final = "contextbase"
_PAGE: Final = 200
_LARGEST: Final = 1 << 20  # bytes; tools read longer files in parts
_NOT_FOUND: Final = -32002


class Resources:
    def __init__(self, tools: ToolService, files: FileService) -> None:
        self._tools = tools
        self._files = files

    async def list(self, ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        try:
            place = await self._tools.place(request_of(ctx.request))
            tree = await place_files(self._files, place).tree()
        except ContextbaseError as error:
            note_elsewhere(ctx.request, error)
            raise MCPError(types.INVALID_PARAMS, error.message) from error
        after = (params.cursor if params is not None else None) or ""
        entries = (
            (f"{folder}/{name}" if folder else name, leaf)
            for folder, node in tree.walk()
            for name, leaf in sorted(node.files.items())
        )
        page = list(islice((entry for entry in entries if _order(entry[0]) > _order(after)), _PAGE + 1))
        shown = [
            types.Resource(uri=uri_of(place.project, path), name=path, mime_type=leaf.mime or None, size=leaf.size)
            for path, leaf in page[:_PAGE]
        ]
        return types.ListResourcesResult(resources=shown, next_cursor=page[_PAGE - 1][0] if len(page) > _PAGE else None)

    async def templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:  # noqa: ARG002 - there is one
        template = types.ResourceTemplate(
            uri_template=f"{_SCHEME}://{{project}}/{{+path}}",
            name="file",
            description="A file of the project where you work, by its path.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            place = await self._tools.place(request_of(ctx.request))
            path = path_of(uri, place.project)
            async with place_files(self._files, place).opened(path) as opened:
                if opened.content.size > _LARGEST:
                    raise TooLarge(f"{path} has more than {_LARGEST} bytes; read it in parts with read_file.")
                content = await part_of_content(opened.content, 0, opened.content.size)
                mime = opened.details.entry.mime or None
        except NotFound as error:
            raise MCPError(_NOT_FOUND, error.message, {"uri": uri}) from error
        except ContextbaseError as error:
            note_elsewhere(ctx.request, error)
            raise MCPError(types.INVALID_PARAMS, error.message) from error
        return types.ReadResourceResult(contents=[_contents(uri, content, mime)])


def uri_of(project: str, path: str) -> str:
    return f"{_SCHEME}://{quote(project, safe='')}/{quote(path)}"


def path_of(uri: str, project: str) -> TreePath:
    """Raises `NotFound` for a file of another project, `InvalidPath` for what is no path."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as a '[' in the host
        parts = urlsplit("")
    if parts.scheme != _SCHEME or parts.query or parts.fragment:
        raise InvalidInput(f"{uri[:200]!r} is not the address of a file; write {_SCHEME}://{project}/PATH.")
    if unquote(parts.netloc) != project:
        raise NotFound(f"You work in the project {project}; {uri[:200]!r} is not in it.")
    return TreePath(unquote(parts.path.removeprefix("/"), errors="surrogateescape"))


def _order(path: str) -> tuple[str, ...]:
    """As `walk` goes: a folder's files before what lies deeper."""
    folder, _, name = path.rpartition("/")
    return (*folder.split("/"), "", name) if folder else ("", name)


def _contents(uri: str, content: bytes, mime: str | None) -> types.TextResourceContents | types.BlobResourceContents:
    try:
        return types.TextResourceContents(uri=uri, mime_type=mime, text=content.decode())
    except UnicodeDecodeError:
        return types.BlobResourceContents(uri=uri, mime_type=mime, blob=base64.b64encode(content).decode())
