// The lines of a hunk with their numbers, and within a changed line the part that differs.
export type Piece = { text: string; differs: boolean };
export type DiffRow = { mark: " " | "+" | "-"; old: number | null; now: number | null; pieces: Piece[] };
type Hunk = { old_start: number; new_start: number; lines: string[] };

export function rowsOf(hunk: Hunk): DiffRow[] {
  let old = hunk.old_start;
  let now = hunk.new_start;
  return hunk.lines.flatMap((line): DiffRow[] => {
    const mark = line[0];
    const pieces = [{ text: line.slice(1).replace(/\r?\n$/, ""), differs: false }];
    if (mark === "+") return [{ mark, old: null, now: now++, pieces }];
    if (mark === "-") return [{ mark, old: old++, now: null, pieces }];
    if (mark === "\\") return [];
    return [{ mark: " ", old: old++, now: now++, pieces }];
  });
}

/** Removed lines that added ones follow, as many of each, are compared one by one. */
export function pairs(rows: DiffRow[]): DiffRow[] {
  const result = [...rows];
  for (let start = 0; start < result.length; ) {
    let removed = start;
    while (result[removed]?.mark === "-") removed++;
    let added = removed;
    while (result[added]?.mark === "+") added++;
    const count = removed - start;
    if (count > 0 && added - removed === count) {
      for (let index = 0; index < count; index++) {
        const [a, b] = [result[start + index], result[removed + index]];
        if (!a || !b) continue;
        const [before, after] = differing(a.pieces[0]?.text ?? "", b.pieces[0]?.text ?? "");
        result[start + index] = { ...a, pieces: before };
        result[removed + index] = { ...b, pieces: after };
      }
    }
    start = Math.max(added, start + 1);
  }
  return result;
}

/** Both texts in pieces: what they start and end with alike, and the middle. Plain where hardly anything is alike. */
export function differing(a: string, b: string): [Piece[], Piece[]] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  if (start + end < Math.min(a.length, b.length) * 0.3 || start + end === 0) return [[{ text: a, differs: false }], [{ text: b, differs: false }]];
  const cut = (text: string): Piece[] =>
    [
      { text: text.slice(0, start), differs: false },
      { text: text.slice(start, text.length - end), differs: true },
      { text: text.slice(text.length - end), differs: false },
    ].filter((piece) => piece.text !== "");
  return [cut(a), cut(b)];
}
