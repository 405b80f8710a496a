from pathlib import Path

from contextbase.ids import Seq
from contextbase.workspaces.layers import Layer
from contextbase.workspaces.stacks import MOST_LAYERS, chain_to, start_of_next


def layer(older: int, newer: int, entries: int = 1) -> Layer:
    return Layer(folder=Path(f"{older}-{newer}"), older=Seq(older), newer=Seq(newer), entries=entries, bytes=0, total=9)


def test_the_empty_tree_needs_no_layer() -> None:
    assert chain_to(Seq(0), []) == ()
    assert start_of_next(Seq(3), []) == (0, 0)


def test_the_shortest_way_is_taken_and_gaps_are_seen() -> None:
    layers = [layer(0, 2), layer(2, 3), layer(3, 4), layer(2, 4), layer(5, 6)]
    chain = chain_to(Seq(4), layers)
    assert chain is not None
    assert [each.folder.name for each in chain] == ["0-2", "2-4"]
    assert chain_to(Seq(6), layers) is None
    assert start_of_next(Seq(6), layers) == (4, 9)
    assert start_of_next(Seq(3), [layer(0, 5)]) == (0, 0)  # an older snapshot than any that is here


def test_chains_stay_short_and_a_change_is_rewritten_a_few_times_only() -> None:
    layers = [layer(0, 1, entries=10_000)]
    written = 0
    for seq in range(2, 402):
        start, _ = start_of_next(Seq(seq), layers)
        layers.append(layer(start, seq, entries=seq - start))
        written += seq - start
        chain = chain_to(Seq(seq), layers)
        assert chain is not None
        assert len(chain) <= MOST_LAYERS
        assert chain[0].entries == 10_000  # the whole tree is not written again for so little
    assert written < 400 * 8


def test_the_whole_tree_is_written_anew_once_the_changes_outweigh_it() -> None:
    layers = [layer(0, 1, entries=5), *(layer(seq, seq + 1, entries=3) for seq in range(1, MOST_LAYERS))]
    assert start_of_next(Seq(50), layers) == (0, 0)
