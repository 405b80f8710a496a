// Commits as bars of the time machine, oldest first; each bar is one commit, or as many as it takes to fit.
export type Bar = { first: number; last: number; changes: number; at: string; commits: number };
type Commit = { seq: number; change_count: number; author: { at: string } };

export const MOST_BARS = 72;

export function barsOf(newestFirst: Commit[], most = MOST_BARS): Bar[] {
  const commits = [...newestFirst].reverse();
  const each = Math.max(1, Math.ceil(commits.length / most));
  const bars: Bar[] = [];
  for (let start = 0; start < commits.length; start += each) {
    const part = commits.slice(start, start + each);
    const [first, last] = [part[0], part[part.length - 1]];
    if (!first || !last) continue;
    bars.push({ first: first.seq, last: last.seq, commits: part.length, at: last.author.at, changes: part.reduce((sum, one) => sum + Math.max(1, one.change_count), 0) });
  }
  return bars;
}

/** 0.12 to 1: a commit of 10,000 files must not make all others vanish. */
export function heightOf(changes: number, largest: number): number {
  return Math.max(0.12, Math.log1p(changes) / Math.log1p(Math.max(largest, 1)));
}

/** The bar that shows a snapshot: the last one that is not after it. */
export function barAt(bars: Bar[], seq: number | undefined): number {
  if (seq === undefined) return bars.length - 1;
  let found = 0;
  bars.forEach((bar, index) => {
    if (bar.first <= seq) found = index;
  });
  return found;
}
