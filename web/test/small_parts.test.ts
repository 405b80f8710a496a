import { describe, expect, it } from "vitest";
import { decoded, decodedPart } from "../src/api/queries";
import { pressing } from "../src/inbox/budgets";
import { union } from "../src/live/connection";
import { differing, pairs, rowsOf } from "../src/projects/diffRows";
import { chosenLines, parseLines } from "../src/projects/lines";
import { barAt, barsOf, heightOf } from "../src/projects/timeline";
import { matches } from "../src/shell/matching";
import { formatBytes, shortName } from "../src/ui/format";
import { windowOf } from "../src/ui/windowed";

describe("lines in an address", () => {
  it.each([["4", [4, 4]], ["4-9", [4, 9]], ["9-4", [4, 9]], ["0", undefined], ["x", undefined], [undefined, undefined]])("%s", (text, wanted) => {
    expect(parseLines(text as string | undefined)).toEqual(wanted);
  });
  it("are chosen, extended with Shift, and let go by a second click", () => {
    expect(chosenLines(undefined, 4, false)).toBe("4");
    expect(chosenLines("4", 9, true)).toBe("4-9");
    expect(chosenLines("9", 4, true)).toBe("4-9");
    expect(chosenLines("4", 4, false)).toBeUndefined();
  });
});

describe("a hunk", () => {
  it("numbers both sides", () => {
    const rows = rowsOf({ old_start: 3, new_start: 3, lines: [" a\n", "-b\n", "+c\n", " d\n", "\\ No newline"] });
    expect(rows.map((row) => [row.mark, row.old, row.now])).toEqual([[" ", 3, 3], ["-", 4, null], ["+", null, 4], [" ", 5, 5]]);
  });
  it("marks the words that differ", () => {
    const rows = pairs(rowsOf({ old_start: 1, new_start: 1, lines: ["-We launch in May.\n", "+We launch in July.\n"] }));
    expect(rows[0]?.pieces.filter((piece) => piece.differs)).toEqual([{ text: "Ma", differs: true }]);
    expect(rows[1]?.pieces.filter((piece) => piece.differs)).toEqual([{ text: "Jul", differs: true }]);
  });
  it("leaves lines plain that have nothing in common", () => {
    expect(differing("abc", "xyz")[0]).toEqual([{ text: "abc", differs: false }]);
  });
});

describe("the time machine", () => {
  const commits = Array.from({ length: 200 }, (_, index) => ({ seq: 200 - index, change_count: 1, author: { at: "2026-01-01T00:00:00Z" } }));
  it("has as many bars as fit, oldest first, and loses no commit", () => {
    const bars = barsOf(commits, 72);
    expect(bars.length).toBeLessThanOrEqual(72);
    expect(bars[0]?.first).toBe(1);
    expect(bars.reduce((sum, bar) => sum + bar.commits, 0)).toBe(200);
  });
  it("finds the bar of a snapshot", () => {
    const bars = barsOf(commits.slice(0, 10));
    expect(bars[barAt(bars, 195)]?.first).toBe(195);
    expect(barAt(bars, undefined)).toBe(9);
  });
  it("lets a large commit not hide the small ones", () => {
    expect(heightOf(1, 10_000)).toBeGreaterThanOrEqual(0.12);
    expect(heightOf(10_000, 10_000)).toBe(1);
  });
});

describe("small parts", () => {
  it("draw only the rows in sight", () => {
    expect(windowOf(28_000, 560, 28, 100_000)).toEqual([992, 1028]);
    expect(windowOf(0, 560, 28, 3)).toEqual([0, 3]);
  });
  it("match by words in any order, or by letters in order", () => {
    expect(matches("docs/plan.md", "plan docs")).toBe(true);
    expect(matches("docs/plan.md", "dpm")).toBe(true);
    expect(matches("docs/plan.md", "xyz")).toBe(false);
  });
  it("join what all tabs want, at most 16", () => {
    expect(union(["a"], [["b", "a"], ["c"]])).toEqual(["a", "b", "c"]);
    expect(union([], [Array.from({ length: 30 }, (_, index) => String(index))])).toHaveLength(16);
  });
  it("tell text from bytes", () => {
    const bytes = (...values: number[]) => new Uint8Array(values).buffer;
    expect(decoded(bytes(104, 105), false)).toBe("hi");
    expect(decoded(bytes(104, 0), false)).toBeNull();
    expect(decoded(bytes(0xc3), false)).toBeNull();
    expect(decoded(bytes(104, 0xc3), true)).toBe("h");
  });
  it("write sizes and names shortly", () => {
    expect(formatBytes(999)).toBe("999 B");
    expect(formatBytes(38_000_000)).toBe("38.0 MB");
    expect(shortName("user:ann")).toBe("ann");
    expect(shortName("agent:ann")).toBe("agent:ann");
  });
});

describe("a part of a file", () => {
  it("leaves out letters that are cut in two at either end", () => {
    const whole = new TextEncoder().encode("aéb");
    expect(decodedPart(whole.slice(2).buffer)).toBe("b");
    expect(decodedPart(whole.slice(0, 2).buffer)).toBe("a");
  });
});

describe("budgets that press", () => {
  it("are those nearly or wholly used up, the worst first", () => {
    const budget = (subject: string, spent: number) => ({ scope: "user" as const, subject, monthly_limit: 100, spent, reserved: 0 });
    expect(pressing([budget("a", 79), budget("b", 80), budget("c", 120)]).map((one) => one.subject)).toEqual(["c", "b"]);
  });
});
