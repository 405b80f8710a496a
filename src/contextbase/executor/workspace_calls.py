"""Calls about the workspace: its files, the agents' data in it, and whether an agent can work here."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from typing import Final

from contextbase.agents.model import AgentPlace
from contextbase.agents.registry import adapters
from contextbase.executor.calls import CallAnswer, CallHandler, CallRefused, ExecutorCall
from contextbase.executor.workspace_archive import archived, piped
from contextbase.executor.workspace_transfer import WorkspaceTransfer
from contextbase.executor.workspace_tree import PathRefused, WorkspaceTree

__all__ = ["WorkspaceCalls"]

_PIECE: Final = 1 << 16
_MOST_ENTRIES: Final = 10_000
_DEEPEST: Final = 64


class WorkspaceCalls:
    def __init__(self, place: AgentPlace) -> None:
        self._place = place
        self._tree = WorkspaceTree(place.workspace)
        self._transfer = WorkspaceTransfer(place)

    def handlers(self) -> dict[tuple[str, str], CallHandler]:
        calls: dict[tuple[str, str], CallHandler] = {
            ("POST", "/workspace/restore"): self.restore,
            ("POST", "/workspace/sync"): self.sync,
            ("POST", "/workspace/validate"): self.validate,
            ("POST", "/workspace/link-agent-data"): self.link_agent_data,
            ("GET", "/workspace/tree"): self.tree,
            ("GET", "/workspace/file"): self.file,
            ("PUT", "/workspace/file"): self.put_file,
            ("GET", "/workspace/download"): self.download,
        }
        return {name: _refusing(each) for name, each in calls.items()}

    async def restore(self, call: ExecutorCall) -> CallAnswer:
        """Bring files in that the body has as an archive. Without one: they are in a folder that the server has bound,
        and come by themselves."""
        since = call.query.get("since")
        with tempfile.TemporaryFile() as spool:
            while piece := await call.stream.read():
                await asyncio.to_thread(spool.write, piece)
            if not spool.tell():
                return self._bound()
            if since is not None and not self._transfer.knows(since):
                raise CallRefused(409, "cursor_outdated", "What was here then is not known any more; sync first.")
            spool.seek(0)
            return CallAnswer(values=await asyncio.to_thread(self._transfer.restore, spool, since))

    async def sync(self, call: ExecutorCall) -> CallAnswer:
        """The files that changed since a token as an archive (`as=archive`), or nothing, if the server sees them."""
        if call.query.get("as") != "archive":
            return self._bound()
        changes = await asyncio.to_thread(self._transfer.changes, call.query.get("since"))
        return CallAnswer(pieces=piped(changes.write))

    def _bound(self) -> CallAnswer:
        return CallAnswer(values={"state": "bound", "workspace": str(self._place.workspace)})

    async def link_agent_data(self, call: ExecutorCall) -> CallAnswer:
        """Folders for each agent's data, and links in HOME for programs that look there."""
        del call
        return CallAnswer(values={"links": await asyncio.to_thread(self._linked)})

    async def validate(self, call: ExecutorCall) -> CallAnswer:
        del call
        problems = await asyncio.to_thread(self._problems)
        versions = {each.name: await asyncio.to_thread(each.version, self._place) for each in adapters()}
        return CallAnswer(values={"ok": not problems, "problems": problems, "agents": versions})

    async def tree(self, call: ExecutorCall) -> CallAnswer:
        path, depth = call.query.get("path", ""), min(call.number("depth", 1), _DEEPEST)
        entries, has_more = await asyncio.to_thread(self._tree.entries, path, depth=depth, most=_MOST_ENTRIES)
        return CallAnswer(values={"entries": entries, "has_more": has_more})

    async def file(self, call: ExecutorCall) -> CallAnswer:
        pieces = self._pieces(call.query.get("path", ""))
        try:
            first = await anext(pieces)
        except StopAsyncIteration:
            return CallAnswer()
        return CallAnswer(pieces=_after(first, pieces))

    async def put_file(self, call: ExecutorCall) -> CallAnswer:
        path, size = call.query.get("path", ""), 0
        with self._tree.replaced(path) as file:
            while piece := await call.stream.read():
                size += await asyncio.to_thread(file.write, piece)
        return CallAnswer(values={"path": path, "size": size})

    async def download(self, call: ExecutorCall) -> CallAnswer:
        path = call.query.get("path", "")
        await asyncio.to_thread(self._tree.entries, path, depth=1, most=1)  # refused before the answer begins
        return CallAnswer(pieces=archived(self._place.workspace, path))

    async def _pieces(self, path: str) -> AsyncIterator[bytes]:
        with self._tree.opened(path) as file:
            while piece := await asyncio.to_thread(file.read, _PIECE):
                yield piece

    def _linked(self) -> dict[str, str]:
        links = {}
        for adapter in adapters():
            folder = self._place.agent_data / adapter.paths.folder
            folder.mkdir(parents=True, exist_ok=True)
            if adapter.paths.home_link is not None:
                link = self._place.home / adapter.paths.home_link
                if link.is_symlink():
                    link.unlink()
                if not link.exists():  # a real folder of somebody's stays
                    link.symlink_to(folder)
                    links[str(link)] = str(folder)
        return links

    def _problems(self) -> list[str]:
        folders = (self._place.workspace, self._place.home)
        return [f"{folder} cannot be written." for folder in folders if not os.access(folder, os.W_OK | os.X_OK)]


def _refusing(handler: CallHandler) -> CallHandler:
    async def handle(call: ExecutorCall) -> CallAnswer:
        try:
            return await handler(call)
        except PathRefused as refused:
            status, code = (404, "not_found") if refused.is_missing else (400, "invalid_path")
            raise CallRefused(status, code, str(refused)) from None

    return handle


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece
