// Which lines differ between two texts, for what an agent says it edits. Lines have the mark of a patch.
const MOST_CELLS = 400_000; // beyond, all old lines and then all new ones

export function lineDiff(before: string, after: string): string[] {
  const old = linesOf(before);
  const now = linesOf(after);
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const middle = changed(old.slice(start, old.length - end), now.slice(start, now.length - end));
  const same = (lines: string[]) => lines.map((line) => ` ${line}`);
  return [...same(old.slice(0, start)), ...middle, ...same(end ? old.slice(-end) : [])];
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** By the longest common subsequence. */
function changed(old: string[], now: string[]): string[] {
  const removed = old.map((line) => `-${line}`);
  const added = now.map((line) => `+${line}`);
  if (old.length * now.length > MOST_CELLS || old.length === 0 || now.length === 0) return [...removed, ...added];
  const width = now.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      longest[i * width + j] = old[i] === now[j] ? (longest[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(longest[(i + 1) * width + j] ?? 0, longest[i * width + j + 1] ?? 0);
  const result: string[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      result.push(` ${old[i]}`);
      i++;
      j++;
    } else if (j >= now.length || (i < old.length && (longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0))) result.push(removed[i++] ?? "");
    else result.push(added[j++] ?? "");
  }
  return result;
}

export function counted(lines: string[]): { added: number; removed: number } {
  return { added: lines.filter((line) => line.startsWith("+")).length, removed: lines.filter((line) => line.startsWith("-")).length };
}
