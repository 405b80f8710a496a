"""Answers of the routes that are asked most."""

from fastapi import Response
from pydantic import BaseModel

__all__ = ["as_json"]


def as_json(view: BaseModel) -> Response:
    """The view as it is: FastAPI would check again, field by field, what was checked when the view was made."""
    return Response(view.model_dump_json(), media_type="application/json")
