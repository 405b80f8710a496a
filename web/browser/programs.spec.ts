import { afterEach, beforeEach, expect, it } from "vitest";
import { ask, open, script, type Visit, visit } from "./browser";

const ours = Math.random().toString(36).slice(2, 8);
let browser: Visit;

beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

it("a file that an agent shows is opened beside the conversation", async () => {
  const { page } = browser;
  const path = `shown-${ours}.md`;
  await open(page, "/sessions/new?project=notes");
  await page.waitForSelector("text=What should be done?");
  await page.selectOption('select:has(option[value="claude-code"])', "claude-code");
  await page.fill('textarea[aria-label="Message"]', script({ tool: "write", input: { path, content: "Look at this.\n" } }, { tool: "mcp.contextbase.show_files", input: { paths: [path] } }, { text: "There it is." }));
  await page.keyboard.press("Enter");
  await page.waitForSelector(`[data-tool="mcp.contextbase.show_files"]:has-text("${path}")`);
  await page.waitForSelector('aside .cm-line:has-text("Look at this.")');
  expect(page.url()).toContain(`file=${path}`);
  await page.waitForSelector('article[aria-label="Agent"]:has-text("There it is.")');
});

it.each(["claude-code", "codex-cli", "opencode"])("a conversation with the real %s goes from the first message to a file in the project", async (program) => {
  const { page } = browser;
  const path = `by-${program}-${ours}.md`;
  await open(page, "/sessions/new?project=notes");
  await page.waitForSelector("text=What should be done?");
  await page.selectOption(`select:has(option[value="${program}"])`, program);
  await page.fill('textarea[aria-label="Message"]', script({ text: "I write it." }, { tool: "write", input: { path, content: "Hello.\n" } }, { text: "It is written." }));
  await page.keyboard.press("Enter");
  await page.waitForURL(/sessions\/[0-9a-f-]{36}/);
  await page.waitForSelector(`[data-tool="write"]:has-text("${path}")`);
  await page.waitForSelector('article[aria-label="Agent"]:has-text("It is written.")');
  await page.waitForSelector('[data-testid="landing"]:has-text("1 written")');
  const found = await ask<{ entries: { text: string | null }[] }>("POST", "/api/v1/checkouts", { project: "notes", paths: [path], contents: true });
  expect(found.entries[0]?.text?.trim()).toBe("Hello.");
  await page.waitForSelector(`aside:has-text("${path}"):has-text("written")`);
});
