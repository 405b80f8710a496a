import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, open, url, type Visit, visit } from "./browser";

const ours = Math.random().toString(36).slice(2, 8);
type Reviews = { reviews: { id: string; path: string }[] };
let ann: Visit;
let ben: Visit;

async function personal(name: string): Promise<string> {
  return (await ask<{ secret: string }>("POST", "/api/v1/tokens", { principal: name, kind: "user", actions: ["read", "write"] })).secret;
}

/** Two writers change one line of a new file; the second one waits. Gives the item's id. */
async function contested(path: string): Promise<string> {
  const { seq } = await ask<{ seq: number }>("POST", "/api/v1/checkouts", { project: "notes", paths: [] });
  const write = async (name: string, text: string, base: number) => {
    const answer = await fetch(`${url}/api/v1/commits`, { method: "POST", headers: { Authorization: `Bearer ${await personal(name)}`, "Content-Type": "application/json" }, body: JSON.stringify({ project: "notes", base_seq: base, changes: [{ action: "write", path, text }] }) });
    return ((await answer.json()) as { seq: number }).seq;
  };
  const base = await write("ann", "start\n", seq);
  await write("ann", "from Ann\n", base);
  await write("ben", "from Ben\n", base);
  const { reviews } = await ask<Reviews>("GET", `/api/v1/reviews?project=notes&state=open&path=${path}`);
  return reviews[0]?.id ?? "";
}

beforeEach(async () => {
  [ann, ben] = await Promise.all([visit({ token: await personal("ann") }), visit({ token: await personal("ben") })]);
});
afterEach(async () => {
  const problems = [...ann.problems, ...ben.problems];
  await Promise.all([ann.close(), ben.close()]);
  expect(problems).toEqual([]);
});

describe("two people in one review", () => {
  it("see who is on it, what the other says, and that it was decided", async () => {
    const [first, second] = [await contested(`both-${ours}-1.md`), await contested(`both-${ours}-2.md`)];
    const address = `/review?project=notes&item=notes/${first}`;
    await Promise.all([open(ann.page, address), open(ben.page, address)]);
    await Promise.all([ann.page.waitForSelector('[role="radio"]'), ben.page.waitForSelector('[role="radio"]')]);
    await ann.page.keyboard.press("c");
    await ann.page.waitForSelector('[data-testid="claim"]:has-text("you are on it")');
    await ben.page.waitForSelector('[data-testid="claim"]:has-text("ann is on it")');
    await ben.page.fill('input[placeholder="Say something about it"]', "Mine is newer.");
    await ben.page.keyboard.press("Enter");
    await ann.page.waitForSelector('section:has-text("Mine is newer.")');
    await ann.page.keyboard.press("c");
    await ben.page.waitForSelector('[data-testid="claim"]:has-text("ann is on it")', { state: "detached" });
    // Both decide; the one who comes second is told, and nothing is decided twice.
    await ben.page.locator('[role="radio"]').first().focus();
    await ben.page.keyboard.press("3");
    await ann.page.keyboard.press("1");
    await ann.page.keyboard.press("Enter");
    await ann.page.waitForSelector(`text=both-${ours}-1.md was decided.`);
    await ann.page.waitForURL((found) => !found.search.includes(first)); // the next one, without leaving the keyboard
    await ann.page.waitForSelector('[role="radio"]');
    await ben.page.waitForSelector("text=/This item is closed/");
    expect(await ben.page.locator('footer button:has-text("Use")').count()).toBe(0);
    const found = await ask<{ entries: { text: string | null }[] }>("POST", "/api/v1/checkouts", { project: "notes", paths: [`both-${ours}-1.md`], contents: true });
    expect(found.entries[0]?.text).toBe("from Ann\n");
    expect(second).not.toBe("");
  });
});
