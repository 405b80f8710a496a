"""Which layers make a snapshot, and which one to build next. Pure."""

from collections.abc import Iterable
from typing import Final

from contextbase.ids import Seq
from contextbase.workspaces.layers import Layer

__all__ = ["MOST_LAYERS", "chain_to", "newest_until", "start_of_next"]

MOST_LAYERS: Final = 12
"""Each layer costs every first look at a file; rewriting layers costs time and space. In between is a good place."""


def chain_to(seq: Seq, layers: Iterable[Layer]) -> tuple[Layer, ...] | None:
    """The fewest layers that lead from the empty tree to the snapshot, the oldest first; None: there is no way."""
    return _chains(layers).get(seq)


def newest_until(seq: Seq, layers: Iterable[Layer]) -> Seq:
    """The newest snapshot that is here and not newer than `seq`; 0, the empty tree, always is."""
    return max(end for end in _chains(layers) if end <= seq)


def start_of_next(seq: Seq, layers: Iterable[Layer]) -> tuple[Seq, int]:
    """From which snapshot to build a layer up to `seq`, and how many nodes that one has.

    Usually from the newest that is here. Where the chain would grow too long, the new layer also replaces its last
    ones: half of them at least, and those before that are not much larger than what is joined already, so that a byte
    is rewritten O(log n) times. The oldest, which holds the whole tree, only goes when the others outweigh it.
    """
    chains = _chains(layers)
    chain = chains[max(end for end in chains if end <= seq)]
    first = len(chain)  # of those to join
    if len(chain) >= MOST_LAYERS:
        first -= MOST_LAYERS // 2
        weight = sum(layer.entries for layer in chain[first:])
        while first > 1 and chain[first - 1].entries <= 2 * weight:
            first -= 1
            weight += chain[first].entries
        if first == 1 and chain[0].entries <= weight:
            first = 0
    return (chain[first - 1].newer, chain[first - 1].total) if first else (Seq(0), 0)


def _chains(layers: Iterable[Layer]) -> dict[Seq, tuple[Layer, ...]]:
    best: dict[Seq, tuple[Layer, ...]] = {Seq(0): ()}
    for layer in sorted(layers, key=lambda layer: (layer.newer, layer.older)):
        below = best.get(layer.older)
        if below is not None and (layer.newer not in best or len(below) + 1 < len(best[layer.newer])):
            best[layer.newer] = (*below, layer)
    return best
