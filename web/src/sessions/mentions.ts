// "@pri" before the caret: a file that is about to be mentioned.
export function mentionAt(text: string, caret: number): { start: number; name: string } | null {
  const found = /(^|\s)@([^\s@]*)$/.exec(text.slice(0, caret));
  return found ? { start: found.index + (found[1]?.length ?? 0), name: found[2] ?? "" } : null;
}
