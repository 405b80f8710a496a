/** "4" or "4-9" in an address, as first and last line. */
export function parseLines(text: string | undefined): [number, number] | undefined {
  const match = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(text ?? "");
  if (!match) return undefined;
  const first = Number(match[1]);
  const last = Number(match[2] ?? match[1]);
  return first < 1 ? undefined : first <= last ? [first, last] : [last, first];
}

/** What a click on a line number makes of the address: that line, or with Shift up to it. */
export function chosenLines(now: string | undefined, line: number, extend: boolean): string | undefined {
  const from = parseLines(now)?.[0];
  if (!extend || from === undefined) return now === String(line) ? undefined : String(line);
  return line === from ? String(line) : `${Math.min(from, line)}-${Math.max(from, line)}`;
}
