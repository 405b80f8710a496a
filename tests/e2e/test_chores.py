"""A server does its chores, and tells administrators about those that the leader does."""

import asyncio
from pathlib import Path

from tests.support.postgres import reachable_folder
from tests.support.server import start_server

from contextbase.data_folder import DataFolder
from contextbase.servers.request import get

LONGEST = 120


async def test_a_server_leads_and_has_done_every_shared_chore() -> None:
    with reachable_folder() as folder, start_server(folder / "data") as server:
        token = DataFolder(Path(server.data)).read_owner_token()
        assert token
        async with asyncio.timeout(LONGEST):
            while len((found := get(server.url, token, "/api/v1/chores"))["chores"]) < 9:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
        assert found["leader"]["is_alive"]
        assert found["leader"]["term"] == 1
        assert [(one["name"], one["error"]) for one in found["chores"]] == [
            ("expire-questions", None),
            ("expire-runs", None),
            ("index-contents", None),
            ("keep-sessions", None),
            ("narrow-sessions", None),
            ("prune-events", None),
            ("prune-logins", None),
            ("refresh-reviews", None),
            ("release-model-budgets", None),
        ]
