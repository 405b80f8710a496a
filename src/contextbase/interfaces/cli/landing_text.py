"""What became of a run's changes, in words."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from contextbase.interfaces.cli.output import on_one_line
from contextbase.interfaces.cli.phrases import counted
from contextbase.interfaces.cli.run_text import STATUS_STYLES, STATUS_WORDS
from contextbase.vocabulary import LandingState
from contextbase.wire.session import LandingView

__all__ = ["drawn_landing", "landing_words", "went_in"]

_IN: Final = frozenset({"written", "merged", "unchanged"})
_MOST_LISTED: Final = 20


def went_in(landed: LandingView | None) -> bool:
    """Whether everything that was to go into the project is there."""
    if landed is None:
        return True
    return not landed.held_back and (landed.state is not LandingState.LANDED or landed.counts.keys() <= _IN)


def landing_words(reports: Iterable[LandingView], session: str) -> str:
    """One sentence for one run or several; `session` is what commands about what waits are given."""
    counts: Counter[str] = Counter()
    held_back = 0
    for landed in reports:
        counts.update(landed.counts)
        held_back += landed.held_back
    told = [(counts[status], words) for status, words in STATUS_WORDS.items() if counts[status]]
    parts = [f"{number:,} {words}" for number, words in told]
    if told:
        parts[0] = f"{counted(told[0][0], 'file')} {told[0][1]}"
    if counts["discarded"]:
        parts.append(f"{counted(counts['discarded'], 'file')} thrown away")
    sentences = [", ".join(parts)] if parts else []
    if counts["in_review"]:
        sentences[0] += ": contextbase review list"
    if waiting := counts["uncommitted"]:
        sentences.append(
            f"{counted(waiting, 'file')} {'waits' if waiting == 1 else 'wait'} in the session: "
            f"contextbase session land {session}, or discard {session}"
        )
    if held_back:
        sentences.append(
            f"{counted(held_back, 'file')} held back, because the project does not take such files (contextbase "
            f"session rescue {session} brings them here)"
        )
    return f"{'. '.join(sentences)}." if sentences else "No file was changed."


def drawn_landing(landed: LandingView, session: str) -> Iterator[Text]:
    """The sentence, and below it the files: those that need somebody's eye come first."""
    yield Text(landing_words([landed], session), "bold" if went_in(landed) else "bold yellow")
    for path in landed.paths[:_MOST_LISTED]:
        reason = "" if path.reason is None else f"  {on_one_line(path.reason)}"
        yield Text.assemble(
            (f"  {path.status.replace('_', ' '):12}", STATUS_STYLES.get(path.status, "green")),
            on_one_line(path.path),
            reason,
        )
    if (more := sum(landed.counts.values()) - min(len(landed.paths), _MOST_LISTED)) > 0:
        yield Text(f"  … and {more:,} more", "dim")
