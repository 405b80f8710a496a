"""Which commit each line, value or cell of a file comes from."""

from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from contextbase.history.lineage import FileBlame
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToRead
from contextbase.wire.blame import BlameView, LinesView, OriginView, PartView
from contextbase.wire.snapshot import LONGEST_REF

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/history", tags=["history"], responses=problem_answers(404, 429))


@router.get("/blame", responses=problem_answers(410, 413))
async def blame(
    *,
    project_id: ProjectToRead,
    path: Annotated[str, Query(max_length=2048)],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    at: Annotated[str, Query(max_length=LONGEST_REF, description="The snapshot.")] = "head",
    by: Annotated[Literal["lines", "parts"], Query(description="parts: values, or a notebook's cells.")] = "lines",
    first: Annotated[int, Query(ge=1, le=2**31, description="The first line to answer.")] = 1,
    limit: Annotated[int, Query(ge=1, le=100_000, description="The most lines to return.")] = 10_000,
) -> BlameView:
    """Which version, by whom and when, each line of a file comes from; or each value, or each cell."""
    place = TreePath.parse(path)
    if by == "parts":
        return _view(await services.blames.parts(caller, project_id, place, ref=at), [], None)
    found = await services.blames.lines(caller, project_id, place, ref=at)
    count = sum(len(run.lines) for run in found.lines)
    end = first + limit
    shown = [
        LinesView(
            first=max(run.first, first),
            lines=[
                line.decode("utf-8", "replace")
                for line in islice(run.lines, max(0, first - run.first), max(0, end - run.first))
            ],
            number=run.number,
        )
        for run in found.lines
        if run.first < end and run.first + len(run.lines) > first
    ]
    return _view(found, shown, end if end <= count else None)


def _view(found: FileBlame, lines: list[LinesView], next_line: int | None) -> BlameView:
    return BlameView(
        path=found.path,
        node_id=found.node_id,
        number=found.number,
        seq=found.seq,
        origins=[OriginView.model_validate(origin) for origin in found.origins],
        lines=lines,
        parts=[PartView(pointer=part.pointer, number=part.number) for part in found.parts],
        next_line=next_line,
    )
