"""The tools and files in the terms of the protocol. Imports the SDK: see `endpoint`."""

import logging
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from contextbase import __version__
from contextbase.bootstrap import Services
from contextbase.errors import ContextbaseError, Damaged, Misconfigured
from contextbase.interfaces.mcp.request import note_elsewhere, request_of
from contextbase.interfaces.mcp.resources import Resources
from contextbase.interfaces.mcp.subscriptions import Subscriptions
from contextbase.logs import trace_id
from contextbase.tools.model import Tool
from contextbase.tools.service import INSTRUCTIONS
from contextbase.tools.wording import error_text

__all__ = ["McpServer"]

_log = logging.getLogger(__name__)

_ALWAYS_LOAD: Final = {"anthropic/alwaysLoad": True}


class McpServer:
    def __init__(self, services: Services) -> None:
        self._tools = services.agents.tools
        self._most_bytes = services.core.settings.server.max_request_bytes
        resources = Resources(services.agents.tools, services.agents.files)
        self._server: Server[dict[str, Any]] = Server(
            "contextbase",
            version=__version__,
            title="contextbase",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.templates,
            on_read_resource=resources.read,
            on_subscriptions_listen=Subscriptions(services),
            get_tool_input_schema=lambda _: None,
        )
        self._server.middleware.clear()  # its tracing: we have our own

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. A manager for each: it keeps what belongs to a session, and there are none."""
        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=self._most_bytes
        )
        async with manager.run():
            await manager.asgi_app(scope, receive, send)

    async def _list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:  # noqa: ARG002 - one page holds all
        caller = request_of(ctx.request).caller
        return types.ListToolsResult(tools=[_shown(tool) for tool in self._tools.offered(caller)])

    async def _call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        request = request_of(ctx.request, ctx.meta)
        try:
            result = await self._tools.call(params.name, params.arguments or {}, request)
        except (Misconfigured, Damaged) as error:
            _log.error(error.message, extra={"code": error.code}, exc_info=error)
            return _failed("The server has a problem that its operator must look at. Tell the user.")
        except ContextbaseError as error:
            note_elsewhere(ctx.request, error)
            return _failed(error_text(error))
        except Exception:  # noqa: BLE001 - the model is told that it failed, and the log why
            _log.exception("a tool failed", extra={"tool": params.name})
            return _failed(f"Something went wrong on the server. Its log has it under {trace_id.get()}.")
        blocks: list[types.ContentBlock] = [types.TextContent(text=text) for text in (result.text, result.note) if text]
        if result.image is not None:
            blocks.append(types.ImageContent(data=result.image.data, mime_type=result.image.media_type))
        return types.CallToolResult(content=blocks)


def _shown(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=None if tool.is_read_only else tool.is_destructive,
            idempotent_hint=tool.is_idempotent or None,
            open_world_hint=False,
        ),
        _meta=_ALWAYS_LOAD if tool.is_basic else None,
    )


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
