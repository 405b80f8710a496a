"""MCP servers elsewhere, asked for an agent: with credentials of ours, at addresses that were checked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import httpx
import pytest
from tests.support.mcp_servers import remote_server
from tests.support.scripted_model import listening

from contextbase.ids import ProjectId
from contextbase.models.addresses import AddressChecker
from contextbase.models.egress.policy import AllowedHosts
from contextbase.models.egress.proxy import EgressReport
from contextbase.models.http_transport import upstream_client
from contextbase.models.remote_mcp import REMOTE_SERVERS, RemoteMcp, RemoteMcpServer, RemoteServers

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class Hosts:
    """What sandboxes may reach."""

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    async def allowed(self, project_id: ProjectId) -> AllowedHosts:
        del project_id
        return AllowedHosts.of(self._allowed)


@asynccontextmanager
async def asking(
    servers: list[RemoteMcpServer] | None, checker: AddressChecker | None = None, *allowed: str
) -> AsyncIterator[tuple[httpx.AsyncClient, list[str]]]:
    """A program of a sandbox, and the outcomes that were told. None: no run is at work."""
    told: list[str] = []

    async def tell(report: EgressReport) -> None:
        told.append(report.outcome)

    run = None
    if servers is not None:
        named = {server.name: server for server in servers}
        run = RemoteServers(project_id=ProjectId(uuid4()), servers=named, on_host=tell)
    checker = checker or AddressChecker(allow_loopback=True)
    async with upstream_client(idle_seconds=60) as client:
        app = RemoteMcp(client=client, hosts=Hosts(*allowed), checker=checker)
        async with (
            listening(app, {REMOTE_SERVERS: lambda: run}) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as asked,
        ):
            yield asked, told


def server(url: str, *, needs_egress: bool = False) -> RemoteMcpServer:
    headers = {"Authorization": "Bearer secret"}
    return RemoteMcpServer(name="weather", url=url, headers=headers, needs_egress=needs_egress)


async def test_a_request_gets_the_servers_credentials_and_nothing_of_the_sandboxes_own() -> None:
    seen: list[dict[str, str]] = []
    async with remote_server("secret", seen) as url, asking([server(url)]) as (client, told):
        headers = {"Authorization": "Bearer forged", "Cookie": "a=b", "Mcp-Session-Id": "7", "X-Other": "1"}
        answer = await client.post("/servers/weather", json=ASKED, headers=headers)
    assert answer.json()["result"]["tools"][0]["name"] == "forecast"
    assert "set-cookie" not in answer.headers
    [got] = seen
    assert (got["authorization"], got["mcp-session-id"]) == ("Bearer secret", "7")
    assert not {"cookie", "x-other"} & got.keys()
    assert told == ["connected"]


async def test_nobody_is_sent_elsewhere_and_nothing_is_asked_without_a_run() -> None:
    async with remote_server("secret", []) as url:
        async with asking([server(f"{url}/moved")]) as (client, _):
            assert (await client.post("/servers/weather", json=ASKED)).status_code == 502
            assert (await client.post("/servers/other", json=ASKED)).status_code == 404
            assert (await client.put("/servers/weather", json=ASKED)).status_code == 405
        async with asking(None) as (client, _):
            assert (await client.post("/servers/weather", json=ASKED)).status_code == 409


@pytest.mark.parametrize(("needs_egress", "is_allowed", "status"), [(True, False, 403), (True, True, 200)])
async def test_a_server_that_a_person_named_is_at_a_host_that_is_allowed(
    needs_egress: bool, is_allowed: bool, status: int
) -> None:
    seen: list[dict[str, str]] = []
    async with remote_server("secret", seen) as url:
        allowed = [url.removeprefix("http://")] if is_allowed else []
        async with asking([server(url, needs_egress=needs_egress)], None, *allowed) as (client, told):
            assert (await client.post("/servers/weather", json=ASKED)).status_code == status
    assert bool(seen) == is_allowed
    assert told == ["connected" if is_allowed else "refused"]


async def test_addresses_of_our_own_network_are_refused() -> None:
    seen: list[dict[str, str]] = []
    async with remote_server("secret", seen) as url, asking([server(url)], AddressChecker()) as (client, told):
        answer = await client.post("/servers/weather", json=ASKED)
    assert answer.status_code == 403
    assert told == ["refused"]
    assert not seen
