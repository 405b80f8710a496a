"""What callers build to pass to the clients. A wrong type or value raises `InvalidInput`."""

from typing import TYPE_CHECKING

from pydantic import BaseModel

from contextbase.sdk.arguments import input_checked
from contextbase.wire.commit import ChangeBody
from contextbase.wire.policy import LeaseRuleBody, MergeRuleBody
from contextbase.wire.review import PickBody
from contextbase.wire.sandbox import LimitsBody

__all__ = ["Change", "LeaseRule", "Limits", "MergeRule", "Pick"]


class _Checked(BaseModel):
    if not TYPE_CHECKING:  # type checkers know the fields as arguments

        def __init__(self, **fields: object) -> None:
            with input_checked(type(self).__name__):
                super().__init__(**fields)


class Change(_Checked, ChangeBody):
    """One change of a commit: `action` is write, delete, rename or mkdir.

    A write has exactly one of `text`, `base64` and `hash` (of uploaded content). A rename has a `target`."""


class Pick(_Checked, PickBody):
    """Which side to take for one conflict of a review item."""


class MergeRule(_Checked, MergeRuleBody):
    """How files that match a pattern are merged."""


class LeaseRule(_Checked, LeaseRuleBody):
    """Whether leases on files that match a pattern are binding."""


class Limits(_Checked, LimitsBody):
    """What a command may use at most."""
