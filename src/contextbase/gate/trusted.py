"""What only our own code may ask of the gate. An import contract keeps this module from the interfaces."""

from dataclasses import dataclass
from uuid import UUID

from contextbase.gate.model import MANUAL, ReviewState
from contextbase.ids import NodeId, Seq, TreePath

__all__ = ["Closing", "MovedFolder", "TrustedTerms"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedFolder:
    """A folder whose entries the request renames one by one: what others have put in it since goes along."""

    path: TreePath
    target: TreePath
    base: Seq  # the snapshot in which the writer saw it


@dataclass(frozen=True, kw_only=True, slots=True)
class Closing:
    """A review item that a commit settles."""

    review_id: UUID
    path: TreePath  # the item's, and the node it is about: for the audit trail
    node_id: NodeId
    state: ReviewState = ReviewState.RESOLVED
    strategy: str = MANUAL  # how it was decided
    told: str = ""  # the same as a part of a sentence


@dataclass(frozen=True, kw_only=True, slots=True)
class TrustedTerms:
    """On which terms the gate takes a request of our own code. What comes from outside has none of them."""

    is_spelt_out: bool = False  # a folder's contents are named one by one, where they go as well
    moved: tuple[MovedFolder, ...] = ()  # with `is_spelt_out`; the answer has what went along after all others
    is_decided: bool = False  # goes into critical files as well, as if a person had decided it
    closes: tuple[Closing, ...] = ()  # closed in the same transaction, if every change goes in
