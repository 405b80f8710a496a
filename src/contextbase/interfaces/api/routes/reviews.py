"""The review queue: what waits for a person, and what people decide."""

import base64
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from contextbase.gate.answers import conflict_to_dict
from contextbase.gate.model import ReviewState
from contextbase.identity.model import Action, PrincipalName
from contextbase.ids import Seq, TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToRead
from contextbase.interfaces.api.routes.commits import bytes_of, content_of
from contextbase.review.model import (
    Choice,
    Comment,
    ConflictPick,
    ItemFilter,
    ReviewDecision,
    ReviewItem,
    Shown,
    ShownSide,
)
from contextbase.wire.commit import ConflictPlace, ConflictSide, ConflictView
from contextbase.wire.review import (
    ClaimCreate,
    CommentCreate,
    CommentView,
    ReleaseCreate,
    ReviewDetail,
    ReviewPage,
    ReviewReject,
    ReviewResolve,
    ReviewSide,
    ReviewView,
    StateName,
    SuggestionView,
)

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/reviews", tags=["reviews"], responses=problem_answers(404, 429))

Who = Annotated[str | None, Query(max_length=120, description="Such as agent:indexer, or indexer.")]
_DECIDED = problem_answers(409, 410)


@router.get("")
async def list_reviews(
    *,
    project_id: ProjectToRead,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    state: Annotated[StateName | None, Query(description="Left out: any.")] = None,
    path: Annotated[str | None, Query(max_length=2048, description="And what is below it.")] = None,
    author: Who = None,
    claimed_by: Who = None,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ReviewPage:
    """Items you may see, newest first."""
    page = await services.reviews.page(
        caller,
        project_id,
        ItemFilter(
            state=None if state is None else ReviewState(state),
            path=None if path is None else TreePath.parse(path),
            before=before,
        ),
        author=None if author is None else PrincipalName.parse(author),
        claimed_by=None if claimed_by is None else PrincipalName.parse(claimed_by),
        limit=limit,
    )
    return ReviewPage(reviews=[_view(item) for item in page.items], next_before=page.next_before)


@router.get("/{review_id}")
async def show_review(
    review_id: UUID, project_id: ProjectToRead, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ReviewDetail:
    """An item with its sides, the merge as it is now, and what is contested in it."""
    return _detail(await services.reviews.show(caller, project_id, review_id))


@router.post("/{review_id}/claim", responses=problem_answers(409))
async def claim_review(
    review_id: UUID, body: ClaimCreate, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ReviewView:
    """Say that you are on it. It is advice: it keeps nobody from deciding."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    return _view(await services.reviews.claim(caller, project_id, review_id, take_over=body.take_over))


@router.post("/{review_id}/release", responses=problem_answers(409))
async def release_review(
    review_id: UUID, body: ReleaseCreate, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ReviewView:
    """Take your claim back."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    return _view(await services.reviews.release(caller, project_id, review_id))


@router.post("/{review_id}/comments", status_code=201)
async def comment_on_review(
    review_id: UUID, body: CommentCreate, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> CommentView:
    """Add to what is said about an item; its author is told through the feed."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    comment = await services.reviews.comment(caller, project_id, review_id, body.text)
    return _comment_view(comment)


@router.post("/{review_id}/resolve", responses=_DECIDED)
async def resolve_review(
    review_id: UUID, body: ReviewResolve, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ReviewView:
    """Decide it, in one commit that also closes it. What others changed since `ours_seq` is merged; what conflicts with
    that is answered with 409, and nothing is changed."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    decision = ReviewDecision(
        choice=Choice(body.choice),
        epoch=body.epoch,
        ours_seq=None if body.ours_seq is None else Seq(body.ours_seq),
        picks=tuple(
            ConflictPick(
                conflict=pick.conflict,
                side=None if pick.side is None else Choice(pick.side),
                text=None if pick.text is None else bytes_of(pick.text, f"conflict {pick.conflict}"),
            )
            for pick in body.picks
        ),
        content=content_of(text=body.text, encoded=body.base64, name=body.hash, path="the edited file"),
        message=body.message,
    )
    return _view(await services.reviews.resolve(caller, project_id, review_id, decision))


@router.post("/{review_id}/reject", responses=_DECIDED)
async def reject_review(
    review_id: UUID, body: ReviewReject, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ReviewView:
    """Close it without taking any of it in. Its author may, too."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    item = await services.reviews.reject(caller, project_id, review_id, reason=body.reason)
    return _view(item)


def _view(item: ReviewItem) -> ReviewView:
    return ReviewView.model_validate(_fields(item))


def _fields(item: ReviewItem) -> dict[str, object]:
    return {
        "id": item.id,
        "path": item.path,
        "renamed_from": item.base_path if item.is_rename else None,
        "state": item.state,
        "reason": item.reason,
        "author": str(item.author),
        "kind": item.kind,
        "seq": item.seq,
        "side_version_id": item.side_id,
        "places": [ConflictPlace(kind=c.place.kind, at=c.place.at) for c in item.conflicts],
        "comments": item.comments,
        "claim": None if item.claim is None else {"by": str(item.claim.by), "at": item.claim.at},
        "closed": None
        if item.closed is None
        else {"by": str(item.closed.by), "at": item.closed.at, "seq": item.closed.seq},
        "created_at": item.created_at,
    }


def _detail(shown: Shown) -> ReviewDetail:
    return ReviewDetail.model_validate(
        _fields(shown.item)
        | {
            "message": shown.message,
            "epoch": shown.epoch,
            "ours_seq": shown.ours_seq,
            "base": _side_view(shown.base),
            "ours": _side_view(shown.ours),
            "theirs": _side_view(shown.theirs),
            "draft": _content_view(shown.draft),
            "conflicts": [ConflictView.model_validate(conflict_to_dict(conflict)) for conflict in shown.conflicts],
            "by_conflict": shown.by_conflict,
            "suggestion": _suggestion_view(shown),
            "discussion": [_comment_view(comment) for comment in shown.comments],
        }
    )


def _suggestion_view(shown: Shown) -> SuggestionView | None:
    suggestion = shown.item.suggestion
    if suggestion is None or (suggestion.texts is not None and shown.suggested is None):
        return None  # none, or one for what is not contested any more
    return SuggestionView(
        by=suggestion.by, at=suggestion.at, content=_content_view(shown.suggested), problem=suggestion.problem
    )


def _side_view(side: ShownSide | None) -> ReviewSide | None:
    if side is None:
        return None
    content = _content_view(side.content) or ConflictSide()
    return ReviewSide(
        path=side.path,
        kind=side.kind,
        number=side.number,
        hash=None if side.content_hash is None else str(side.content_hash),
        size=side.size,
        text=content.text,
        base64=content.base64,
    )


def _content_view(content: bytes | None) -> ConflictSide | None:
    if content is None:
        return None
    try:
        return ConflictSide(text=content.decode())
    except UnicodeDecodeError:
        return ConflictSide(base64=base64.b64encode(content).decode())


def _comment_view(comment: Comment) -> CommentView:
    return CommentView(number=comment.number, author=str(comment.author), text=comment.text, at=comment.at)
