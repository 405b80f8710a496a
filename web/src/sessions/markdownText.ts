// Text in Markdown: its blocks, and the addresses it may link to.

/** Splits at empty lines outside of fences. Lists and quotes that go on after an empty line stay together, and a text
 * with link definitions stays whole, because they hold for all of it. */
export function blocksOf(text: string): string[] {
  if (/^ {0,3}\[[^\]]+\]:/m.test(text)) return [text];
  const blocks: string[] = [];
  let block: string[] = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    const isInside = fence !== "";
    if (mark && !fence) fence = mark;
    else if (mark && fence && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = "";
    if (!isInside && block.length > 0 && block.at(-1)?.trim() === "" && line.trim() !== "" && !/^(\s|[-*+>|]|\d+[.)])/.test(line)) {
      blocks.push(block.join("\n"));
      block = [];
    }
    block.push(line);
  }
  if (block.length) blocks.push(block.join("\n"));
  return blocks;
}

/** Web and mail addresses; anything else, such as `javascript:`, becomes nothing. */
export function safeUrl(url: string): string {
  return /^(https?:\/\/|mailto:)/i.test(url) ? url : "";
}

const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** What a terminal would show, without colours and commands for the terminal; lines that were written over are gone. */
export function plainTerminal(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(/[^\n]*\r(?=[^\n])/g, "").replace(ESCAPES, "");
}
