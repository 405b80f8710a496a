import { describe, expect, it } from "vitest";
import type { ReviewDetail } from "../src/api/client";
import { blocksOf, resolutionOf, resultOf } from "../src/review/choices";

const draft = "a\n<<<<<<< ours\nx1\n||||||| base\nx0\n=======\nx2\n>>>>>>> theirs\nb\n<<<<<<< ours\ny1\n||||||| base\n=======\ny2\n>>>>>>> theirs\n";
const side = (text: string | null) => (text === null ? null : { text });
const conflict = (base: string | null, ours: string, theirs: string) => ({ place: { kind: "lines" as const, at: "" }, reason: "both-changed" as const, base: side(base), ours: side(ours), theirs: side(theirs), suggestion: null });
const detail = { by_conflict: true, draft: { text: draft }, conflicts: [conflict("x0\n", "x1\n", "x2\n"), conflict(null, "y1\n", "y2\n")] } as unknown as ReviewDetail;

describe("a decision", () => {
  it("puts the chosen side into each place and keeps what was settled", () => {
    expect(resultOf(detail, ["theirs", "ours"])).toBe("a\nx2\nb\ny1\n");
    expect(resultOf(detail, ["base", "base"])).toBe("a\nx0\nb\n");
  });

  it("has no result while a place is open", () => {
    expect(resultOf(detail, ["theirs", null])).toBeNull();
    expect(resolutionOf(detail, ["theirs", null], null)).toBeNull();
  });

  it("sends one choice where all places agree, and picks where they do not", () => {
    expect(resolutionOf(detail, ["theirs", "theirs"], null)).toEqual({ choice: "theirs", picks: [] });
    expect(resolutionOf(detail, ["ours", "theirs"], null)).toEqual({ choice: "picked", picks: [{ conflict: 1, side: "ours" }, { conflict: 2, side: "theirs" }] });
    expect(resolutionOf(detail, ["base", "theirs"], null)?.picks[0]).toEqual({ conflict: 1, text: "x0\n" });
  });

  it("sends an edit whatever was chosen before", () => {
    expect(resolutionOf(detail, ["ours", null], "mine")).toEqual({ choice: "edited", picks: [], text: "mine" });
  });

  it("does not trust markers that do not pair up", () => {
    expect(blocksOf("<<<<<<< ours\nx\n")).toBeNull();
  });
});
