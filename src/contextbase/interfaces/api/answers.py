"""Answers as routes send them: whole models, and contents piece by piece."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fastapi import Response
from pydantic import BaseModel

__all__ = ["as_json", "begun"]


def as_json(view: BaseModel) -> Response:
    """The view as it is: FastAPI would check again, field by field, what was checked when the view was made."""
    return Response(view.model_dump_json(), media_type="application/json")


async def begun(pieces: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """The pieces, the first of them read already: what is missing is an error, not half an answer."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return all_pieces()
