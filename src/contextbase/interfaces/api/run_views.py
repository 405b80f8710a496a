"""Runs and sandboxes as the API shows them."""

import codecs
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from typing import Final

from contextbase.commands.model import KeptWorkspace, RunStep, SandboxRecord, Started
from contextbase.commands.sandboxes import SandboxStatus
from contextbase.errors import ContextbaseError
from contextbase.interfaces.api.workspace_views import complete_view, workspace_view
from contextbase.sandbox.model import CommandOutcome, Output, OutputStream
from contextbase.wire.sandbox import (
    CommandItem,
    CommandView,
    CompletedItem,
    EndedItem,
    ExecView,
    KeptItem,
    LimitsBody,
    OutcomeView,
    OutputItem,
    SandboxView,
    StartedItem,
)
from contextbase.workspaces.service import Completed

__all__ = ["OutputTexts", "collected_exec", "collected_run", "outcome_view", "run_item", "sandbox_view", "status_view"]

_MOST_KEPT: Final = 1 << 20


class OutputTexts:
    """Pieces of output as items: text where it can be, with characters that come in two pieces put together."""

    def __init__(self) -> None:
        self._decoders = {stream: codecs.getincrementaldecoder("utf-8")() for stream in OutputStream}

    def item(self, piece: Output) -> OutputItem | None:
        """None: only the beginning of a character so far."""
        decoder = self._decoders[piece.stream]
        held, _ = decoder.getstate()
        try:
            text = decoder.decode(piece.data)
        except UnicodeDecodeError:
            decoder.reset()
            return OutputItem(stream=piece.stream, base64=b64encode(held + piece.data).decode())
        return OutputItem(stream=piece.stream, text=text) if text else None

    def rest(self) -> list[OutputItem]:
        """What was never completed."""
        held = {stream: decoder.getstate()[0] for stream, decoder in self._decoders.items()}
        return [OutputItem(stream=stream, base64=b64encode(data).decode()) for stream, data in held.items() if data]


def run_item(step: Started | CommandOutcome | Completed | KeptWorkspace) -> CommandItem:
    match step:
        case Started():
            return StartedItem(workspace=workspace_view(step.workspace))
        case CommandOutcome():
            return EndedItem(outcome=outcome_view(step))
        case Completed():
            return CompletedItem(completed=complete_view(step))
        case KeptWorkspace():
            return KeptItem(workspace=workspace_view(step.workspace), because=step.because)


def outcome_view(outcome: CommandOutcome) -> OutcomeView:
    return OutcomeView(
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        stopped_by=outcome.stopped_by,
        forks_refused=outcome.forks_refused,
        leftovers_of=list(outcome.leftovers_of),
        slowed_down=outcome.slowed_down,
        seconds=round(outcome.seconds, 6),
        cpu_seconds=outcome.cpu_seconds,
        peak_memory=outcome.peak_memory,
    )


async def collected_run(steps: AsyncGenerator[RunStep, None]) -> CommandView:
    """What the command wrote is told also when its changes could not be committed: in the error's details, as `ran`."""
    ends = _Ends()
    ran: ExecView | None = None
    try:
        async with aclosing(steps):
            async for step in steps:
                match step:
                    case Started():
                        workspace = workspace_view(step.workspace)
                    case Output():
                        ends.take(step)
                    case CommandOutcome():
                        ran = ends.view(step)
                    case Completed() if ran is not None:
                        workspace, completed = workspace_view(step.record), complete_view(step)
                        return CommandView(**dict(ran), workspace=workspace, completed=completed, kept_because=None)
                    case KeptWorkspace() if ran is not None:
                        return CommandView(**dict(ran), workspace=workspace, completed=None, kept_because=step.because)
    except ContextbaseError as error:
        if ran is None:
            raise
        raise error.followed_by("", ran=ran.model_dump(mode="json")) from error
    raise RuntimeError("a run ended without its last step")


async def collected_exec(steps: AsyncGenerator[Output | CommandOutcome, None]) -> ExecView:
    ends = _Ends()
    async with aclosing(steps):
        async for step in steps:
            if isinstance(step, CommandOutcome):
                return ends.view(step)
            ends.take(step)
    raise RuntimeError("a command ended without its outcome")


class _Ends:
    """The end of each stream."""

    def __init__(self) -> None:
        self._kept = {stream: bytearray() for stream in OutputStream}
        self._truncated = False

    def take(self, piece: Output) -> None:
        kept = self._kept[piece.stream]
        kept += piece.data
        if len(kept) > _MOST_KEPT:
            del kept[: len(kept) - _MOST_KEPT]
            self._truncated = True

    def view(self, outcome: CommandOutcome) -> ExecView:
        texts = {stream.value: kept.decode(errors="backslashreplace") for stream, kept in self._kept.items()}
        return ExecView(outcome=outcome_view(outcome), truncated=self._truncated, **texts)


def sandbox_view(record: SandboxRecord) -> SandboxView:
    return SandboxView(
        id=record.id,
        workspace_id=record.workspace_id,
        project_id=record.project_id,
        agent=str(record.principal),
        machine=record.node,
        driver=record.driver,
        network=record.network,
        limits=LimitsBody.model_construct(**asdict(record.limits)),
        created_at=record.created_at,
        seen_at=record.seen_at,
    )


def status_view(status: SandboxStatus) -> SandboxView:
    stats = status.stats
    return sandbox_view(status.record).model_copy(
        update={
            "state": status.state,
            "memory": None if stats is None else stats.memory,
            "processes": None if stats is None else stats.processes,
            "cpu_seconds": None if stats is None else stats.cpu_seconds,
        }
    )
