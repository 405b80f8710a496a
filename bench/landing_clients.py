"""The agents of bench.landing over HTTP, run as a process of their own: the load as JSON in, what happened as JSON out.

Speaks HTTP/1.1 over one kept connection per agent by hand: a client library would take more of the machine than the
server that is measured.
"""

import asyncio
import itertools
import json
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvloop

from bench.landing_load import Answered, run_agents


@dataclass(kw_only=True)
class HttpDoor:
    host: str
    port: int
    project: str
    token: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, url: str, project: str, token: str) -> "HttpDoor":
        address = urlsplit(url)
        host, port = address.hostname or "", address.port or 80
        reader, writer = await asyncio.open_connection(host, port)
        return cls(host=host, port=port, project=project, token=token, reader=reader, writer=writer)

    async def commit(self, path: str, text: str, base: int, key: str) -> Answered:
        change = {"action": "write", "path": path, "text": text, "base": base}
        answer = await self.post("commits", {"project": self.project, "changes": [change], "key": key})
        [made] = answer["changes"]
        return Answered(seq=answer["seq"], status=made["status"], side_version_id=made["side_version_id"])

    async def look(self, path: str) -> tuple[str, int]:
        found = await self.post("checkouts", {"project": self.project, "paths": [path], "contents": True})
        return found["entries"][0]["text"], found["seq"]

    async def post(self, route: str, body: dict[str, object]) -> dict[str, Any]:
        content = json.dumps(body).encode()
        self.writer.write(
            (
                f"POST /api/v1/{route} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
                f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(content)}\r\n\r\n"
            ).encode()
            + content
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        answer: dict[str, Any] = json.loads(await self.reader.readexactly(length))
        if head.split()[1] != "200":
            raise RuntimeError(f"{route} was answered with {answer}")
        return answer


async def work(load: dict[str, Any]) -> dict[str, object]:
    urls = itertools.cycle(load["urls"])
    doors = [await HttpDoor.open(next(urls), load["project"], token) for token in load["tokens"]]
    changes = [{"action": "write", "path": path, "text": text, "base": 0} for path, text in load["files"].items()]
    await doors[0].post("commits", {"project": load["project"], "changes": changes})
    tally = await run_agents(doors, seconds=load["seconds"], conflicts=load["conflicts"])
    for door in doors:
        door.writer.close()
    return {
        "statuses": dict(tally.statuses),
        "milliseconds": tally.milliseconds,
        "seconds": tally.seconds,
        "acknowledged": [(made.seq, made.status, made.side_version_id, value) for made, value in tally.acknowledged],
    }


if __name__ == "__main__":
    happened = json.dumps(uvloop.run(work(json.load(sys.stdin))))
    # Buffered, whatever the environment says of the output: it is long, and a write may take a part of it only.
    with open(sys.stdout.fileno(), "w", closefd=False) as output:
        output.write(happened)
