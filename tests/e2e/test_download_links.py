"""Links to the bucket: against a real S3 server, and a server that has the setting."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.support.postgres import reachable_folder
from tests.support.s3_server import S3Server
from tests.support.server import start_server

from contextbase.sdk import Client, Conflict, NotFound

LARGE = bytes(range(256)) * 2000


def settings(s3: S3Server, prefix: str, seconds: int) -> dict[str, str]:
    return {
        "CONTEXTBASE_BLOBS": f"s3://{s3.connection().bucket}/{prefix}",
        "CONTEXTBASE_S3_ENDPOINT": s3.endpoint,
        "CONTEXTBASE_S3_ACCESS_KEY_ID": s3.access_key_id,
        "CONTEXTBASE_S3_SECRET_ACCESS_KEY": s3.secret_access_key,
        "CONTEXTBASE_S3_LINK_SECONDS": str(seconds),
    }


@pytest.fixture(params=[60, 0], ids=["on", "off"])
def owner(request: pytest.FixtureRequest, s3_server: S3Server) -> Iterator[tuple[Client, str]]:
    variables = settings(s3_server, f"links-{request.param}", request.param)
    with (
        reachable_folder() as folder,
        start_server(folder / "data", **variables) as server,
        Client(server.url, (server.data / "owner-token").read_text().strip()) as client,
    ):
        client.projects.create("plans")
        client.files.write("plans", "large.bin", LARGE)
        client.files.write("plans", "hidden/large.bin", LARGE[::-1])
        client.files.write("plans", "small.txt", b"small")
        yield client, server.url


@pytest.mark.parametrize("owner", [60], indirect=True)
def test_a_link_gives_the_file_for_a_short_time_to_those_who_may_see_it(owner: tuple[Client, str]) -> None:
    client, url = owner
    link = client.files.link("plans", "large.bin")
    assert httpx.get(link.url).content == LARGE
    assert link.expires_at - datetime.now(UTC) <= timedelta(seconds=60)
    assert httpx.get(link.url.replace("X-Amz-Expires=60", "X-Amz-Expires=600")).status_code == 403, "it is signed"
    client.policies.set_rule("plans", "everyone", "hidden/**", "hidden")
    secret = client.tokens.create("reader", project="plans", actions=["read"]).secret
    with Client(url, secret) as reader:
        assert httpx.get(reader.files.link("plans", "large.bin").url).status_code == 200
        with pytest.raises(NotFound):
            reader.files.link("plans", "hidden/large.bin")
    for path in ("small.txt", "hidden"):
        with pytest.raises(Conflict):
            client.files.link("plans", path)
    client.workspaces.create("plans")
    client.files.write("plans", "mine.bin", LARGE + b"1", workspace="me")
    with pytest.raises(Conflict):
        client.files.link("plans", "mine.bin", workspace="me")
    client.workspaces.abandon("plans")


@pytest.mark.parametrize("owner", [0], indirect=True)
def test_without_the_setting_there_are_no_links(owner: tuple[Client, str]) -> None:
    client, _ = owner
    assert b"".join(client.files.download("plans", "large.bin")) == LARGE
    with pytest.raises(Conflict):
        client.files.link("plans", "large.bin")
