import { afterEach, beforeEach, expect, it } from "vitest";
import { ask, guest, open, script, type Visit, violations, visit } from "./browser";

const ours = Math.random().toString(36).slice(2, 8);
const name = `kim-${ours}`;

let browser: Visit;
beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

it("a session is shared to read, then to drive, and taken back with a way back", async () => {
  const { page } = browser;
  const kim = await guest(name, "member");
  const session = (await ask<{ id: string }>("POST", "/api/v1/sessions", { project: "notes", provider: "scripted", title: `Shared ${ours}` })).id;
  const level = async () => (await ask<{ shares: { level: string }[] }>("GET", `/api/v1/sessions/${session}/shares`)).shares[0]?.level;
  await open(kim.page, `/sessions/${session}`);
  await kim.page.waitForSelector("text=Nothing is here");

  await open(page, `/sessions/${session}`);
  await page.click('button[aria-label="More about this session"]');
  await page.click('[role="menuitem"]:has-text("Share…")');
  await page.waitForSelector("text=You share it with nobody");
  await page.fill('[role="dialog"] input', "nobody-there");
  await page.click('[role="dialog"] button[type="submit"]');
  await page.waitForSelector('[role="dialog"] [role="alert"]:has-text("nobody-there")');
  await page.fill('[role="dialog"] input', name);
  await page.click('[role="dialog"] button[type="submit"]');
  await page.waitForSelector(`[role="dialog"] li:has-text("${name}")`);
  expect(await violations(page)).toEqual([]);

  // Kim finds it in the list, reads along, and can change nothing.
  await open(kim.page, "/sessions/new");
  await kim.page.click(`aside[aria-label="History"] section[aria-label="Shared with you"] a:has-text("Shared ${ours}")`);
  await kim.page.waitForSelector('[data-testid="shared"]:has-text("shared by owner")');
  await kim.page.waitForSelector("text=You read along");
  expect(await kim.page.locator('textarea[aria-label="Message"]:not([disabled])').count()).toBe(0);
  await kim.page.click('button[aria-label="More about this session"]');
  await kim.page.waitForSelector('[role="menuitem"]:has-text("Leave this session")');
  expect(await kim.page.locator('[role="menuitem"]').count()).toBe(1);
  await kim.page.keyboard.press("Escape");
  expect(await violations(kim.page)).toEqual([]);

  // Then Kim drives, and the owner sees it.
  await page.selectOption(`[role="dialog"] li:has-text("${name}") select`, "drive");
  await expect.poll(level, { timeout: 60_000 }).toBe("drive");
  await kim.page.reload();
  await kim.page.fill('textarea[aria-label="Message"]', script({ text: `Driven ${ours}.` }));
  await kim.page.keyboard.press("Enter");
  await page.waitForSelector(`article[aria-label="Agent"]:has-text("Driven ${ours}.")`);
  await kim.page.waitForSelector(`article[aria-label="Agent"]:has-text("Driven ${ours}.")`);

  await page.click(`[role="dialog"] li:has-text("${name}") button:has-text("Take back")`);
  await page.waitForSelector("text=You share it with nobody");
  await page.waitForSelector(`text=${name} does not see this session any more`);
  await kim.page.reload();
  await kim.page.waitForSelector("text=Nothing is here");
  await page.keyboard.press("Escape");
  await page.keyboard.press("u");
  await expect.poll(level, { timeout: 60_000 }).toBe("drive");
  await kim.page.reload();
  await kim.page.waitForSelector(`article[aria-label="Agent"]:has-text("Driven ${ours}.")`);
  expect(kim.problems).toEqual([]);
  await kim.close();
});
