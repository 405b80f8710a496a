import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ask, open, ownerToken, url, type Visit, visit } from "./browser";

const FILES = 100_000;
const AT_ONCE = 10_000;
const BIG = 200_000_000;
let browser: Visit;

beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

it("a folder of 100,000 files opens, scrolls to its end and finds one by name", async () => {
  const { page } = browser;
  const project = `many-${Math.random().toString(36).slice(2, 8)}`;
  await ask("POST", "/api/v1/projects", { name: project });
  for (let start = 0; start < FILES; start += AT_ONCE) {
    const changes = Array.from({ length: AT_ONCE }, (_, index) => ({ action: "write", path: `all/file-${String(start + index).padStart(6, "0")}.md`, text: "x\n" }));
    await ask("POST", "/api/v1/commits", { project, base_seq: 0, changes });
  }
  await open(page, `/projects/${project}/files/`);
  await page.click('[role="treeitem"]:has-text("all")');
  await page.waitForSelector('[role="treeitem"]:has-text("file-000000.md")');
  await page.locator('[role="tree"]').focus();
  // What comes in pages is loaded as one goes on; the end of the list is reached all the same.
  await page.waitForFunction(async (last) => {
    const tree = document.querySelector('[role="tree"]');
    tree?.scrollTo(0, tree.scrollHeight);
    await new Promise((resolve) => setTimeout(resolve, 50));
    return [...document.querySelectorAll('[role="treeitem"]')].some((item) => item.textContent?.includes(last));
  }, `file-${FILES - 1}.md`);
  expect(await page.locator('[role="treeitem"]').count()).toBeLessThan(300);
  await page.keyboard.press("Control+k");
  await page.fill('[role="dialog"] [role="combobox"]', "file-054321");
  await page.waitForSelector('[role="option"]:has-text("all/file-054321.md")');
  await page.keyboard.press("Enter");
  await page.waitForSelector('.cm-line:has-text("x")');
}, 900_000);

it("a file of 200 MB is shown part by part, and the rest stays where it is", async () => {
  const { page } = browser;
  const line = "The same line, again and again, until the file is long.\n";
  const part = Buffer.from(line.repeat(Math.ceil(1_000_000 / line.length))).subarray(0, 1_000_000);
  async function* content() {
    for (let sent = 0; sent < BIG; sent += part.length) yield part;
  }
  const upload = await fetch(`${url}/api/v1/uploads?project=notes`, { method: "POST", headers: { Authorization: `Bearer ${ownerToken}`, "Content-Type": "application/octet-stream" }, body: Readable.toWeb(Readable.from(content())), duplex: "half" } as unknown as RequestInit);
  expect(upload.ok, await upload.clone().text()).toBe(true);
  const { hash } = (await upload.json()) as { hash: string };
  const { seq } = await ask<{ seq: number }>("POST", "/api/v1/checkouts", { project: "notes", paths: [] });
  await ask("POST", "/api/v1/commits", { project: "notes", base_seq: seq, changes: [{ action: "write", path: "long.log", hash }] });
  let received = 0;
  page.on("response", (answer) => {
    if (answer.url().includes("/versions/content")) received += Number(answer.headers()["content-length"] ?? 0);
  });
  await open(page, "/projects/notes/files/long.log");
  await page.waitForSelector('.cm-line:has-text("The same line")');
  await page.waitForSelector('[data-testid="parts"]:has-text("0 B to 2.0 MB")');
  await page.click('[data-testid="parts"] button:has-text("Next part")');
  await page.waitForSelector('[data-testid="parts"]:has-text("2.0 MB to 4.0 MB")');
  await page.waitForSelector('.cm-line:has-text("The same line")');
  expect(received).toBeGreaterThan(0);
  expect(received).toBeLessThan(5_000_000);
  await ask("POST", "/api/v1/commits", { project: "notes", base_seq: seq + 1, changes: [{ action: "delete", path: "long.log" }] });
});
