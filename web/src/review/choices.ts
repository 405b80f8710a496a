// What somebody chose at each contested place, and the file that comes of it.
import type { ReviewDetail, Schemas } from "../api/client";

export type Side = "ours" | "base" | "theirs" | "suggestion";
export type Conflict = Schemas["ConflictView"];
export type Resolution = Pick<Schemas["ReviewResolve"], "choice" | "picks" | "text">;

/** The text of a side at a place; null where there is nothing; undefined where it is not text. */
export function sideText(conflict: Conflict, side: Side): string | null | undefined {
  const found = conflict[side];
  return found === null ? null : (found.text ?? undefined);
}

type Block = { text: string } | { conflict: number };

/** A draft in pieces: what is settled, and the marked places, counted from 0. Null if its markers do not pair up. */
export function blocksOf(draft: string): Block[] | null {
  const blocks: Block[] = [];
  let settled = "";
  let inside = 0; // 0: no, 1: ours, 2: base, 3: theirs
  let count = 0;
  for (const line of draft.split(/(?<=\n)/)) {
    if (inside === 0 && line.startsWith("<<<<<<<")) {
      blocks.push({ text: settled }, { conflict: count++ });
      settled = "";
      inside = 1;
    } else if (inside === 1 && line.startsWith("|||||||")) inside = 2;
    else if (inside > 0 && inside < 3 && /^=======(\s|$)/.test(line)) inside = 3;
    else if (inside === 3 && line.startsWith(">>>>>>>")) inside = 0;
    else if (inside === 0) settled += line;
  }
  if (inside !== 0) return null;
  blocks.push({ text: settled });
  return blocks.filter((block) => "conflict" in block || block.text !== "");
}

/** The file with the chosen texts in their places; null where it cannot be put together here. */
export function resultOf(detail: ReviewDetail, chosen: (Side | null)[]): string | null {
  const draft = detail.draft?.text;
  if (draft == null || !detail.by_conflict) return null;
  const blocks = blocksOf(draft);
  if (!blocks || blocks.filter((block) => "conflict" in block).length !== detail.conflicts.length) return null;
  const parts: string[] = [];
  for (const block of blocks) {
    if ("text" in block) parts.push(block.text);
    else {
      const [conflict, side] = [detail.conflicts[block.conflict], chosen[block.conflict]];
      const text = conflict && side ? sideText(conflict, side) : undefined;
      if (text === undefined) return null;
      parts.push(text === null || text === "" || text.endsWith("\n") ? (text ?? "") : `${text}\n`);
    }
  }
  return parts.join("");
}

/** What to send for the choices; null while one is missing. */
export function resolutionOf(detail: ReviewDetail, chosen: (Side | null)[], edited: string | null): Resolution | null {
  if (edited !== null) return { choice: "edited", picks: [], text: edited };
  if (chosen.some((side) => side === null)) return null;
  const sides = chosen as Side[];
  if (sides.every((side) => side === "ours")) return { choice: "ours", picks: [] };
  if (sides.every((side) => side === "theirs")) return { choice: "theirs", picks: [] };
  if (!detail.by_conflict || detail.conflicts.length === 0) {
    const text = sides[0] === "base" ? detail.base?.text : sides[0] === "suggestion" ? detail.suggestion?.content?.text : null;
    return text == null ? null : { choice: "edited", picks: [], text };
  }
  return {
    choice: "picked",
    picks: detail.conflicts.map((conflict, index) => {
      const side = sides[index];
      if (side === "ours" || side === "theirs") return { conflict: index + 1, side };
      return { conflict: index + 1, text: sideText(conflict, side ?? "base") ?? "" };
    }),
  };
}

/** How many choices there are: one per place, or one for the whole file. */
export function placesOf(detail: ReviewDetail): number {
  return detail.by_conflict ? Math.max(1, detail.conflicts.length) : 1;
}
