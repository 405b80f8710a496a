"""Conflict markers, for people who want to see a conflict in the file."""

from contextbase.merge.model import Merged, Sides
from contextbase.merge.sniff import respell

__all__ = ["render_markers"]


def render_markers(
    merged: Merged, *, base: str = "base", ours: str = "ours", theirs: str = "theirs", size: int = 7
) -> bytes | None:
    """The file with zdiff3-style markers around the contested lines, or None where there is no text to draw.

    `base`, `ours` and `theirs` label the sides; `size` is the markers' length.
    """
    if not merged.pieces:
        return merged.content
    lines: list[bytes] = []
    for block in _whole_lines(merged.pieces):
        if isinstance(block, bytes):
            lines.append(block)
        else:
            lines += _drawn(block, (base.encode(), ours.encode(), theirs.encode()), size)
    return respell(b"".join(lines), merged.spelling)


def _whole_lines(pieces: tuple[bytes | Sides, ...]) -> list[bytes | Sides]:
    """The pieces with every contested stretch grown to whole lines, and stretches that then touch made one."""
    blocks: list[bytes | Sides] = []
    for piece in pieces:
        last = blocks.pop() if blocks else b""
        if isinstance(piece, Sides) and isinstance(last, Sides):
            blocks.append(_joined(last, piece))
        elif isinstance(piece, Sides) and isinstance(last, bytes):
            cut = last.rfind(b"\n") + 1
            start = last[cut:]
            blocks += [last[:cut], _joined(Sides(start, start, start), piece)]
        elif isinstance(piece, bytes) and isinstance(last, Sides):
            cut = 0 if _ends_a_line(last) else piece.find(b"\n") + 1 or len(piece)
            end = piece[:cut]
            blocks += [_joined(last, Sides(end, end, end)), *([piece[cut:]] if cut < len(piece) else [])]
        elif isinstance(piece, bytes) and isinstance(last, bytes):
            blocks.append(last + piece)
    return blocks


def _ends_a_line(sides: Sides) -> bool:
    return all(side.endswith(b"\n") or not side for side in sides)


def _joined(one: Sides, other: Sides) -> Sides:
    return Sides(*(left + right for left, right in zip(one, other, strict=True)))


def _drawn(sides: Sides, labels: tuple[bytes, bytes, bytes], size: int) -> list[bytes]:
    base, ours, theirs = (side.splitlines(keepends=True) for side in sides)
    head = 0
    while head < min(len(ours), len(theirs)) and ours[head] == theirs[head]:
        head += 1
    tail = 0
    while tail < min(len(ours), len(theirs)) - head and ours[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    ours_end, theirs_end = len(ours) - tail, len(theirs) - tail
    if base[:head] == ours[:head] and base[len(base) - tail :] == ours[ours_end:] and len(base) >= head + tail:
        base = base[head : len(base) - tail]
    newline = b"\r\n" if any(line.endswith(b"\r\n") for line in ours) else b"\n"
    return [
        *ours[:head],
        b"<" * size + b" " + labels[1] + newline,
        *_terminated(ours[head:ours_end], newline),
        b"|" * size + b" " + labels[0] + newline,
        *_terminated(base, newline),
        b"=" * size + newline,
        *_terminated(theirs[head:theirs_end], newline),
        b">" * size + b" " + labels[2] + newline,
        *ours[ours_end:],
    ]


def _terminated(lines: list[bytes], newline: bytes) -> list[bytes]:
    return lines if not lines or lines[-1].endswith(b"\n") else [*lines[:-1], lines[-1] + newline]
