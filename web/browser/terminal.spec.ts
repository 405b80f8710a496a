import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { ask, guest, open, script, type Visit, violations, visit } from "./browser";

const ours = Math.random().toString(36).slice(2, 8);

async function newSession(title: string): Promise<string> {
  return (await ask<{ id: string }>("POST", "/api/v1/sessions", { project: "notes", provider: "scripted", title })).id;
}

/** One with a sandbox that runs. */
async function startedSession(title: string): Promise<string> {
  const session = await newSession(title);
  const run = await ask<{ id: string }>("POST", `/api/v1/sessions/${session}/runs`, { message: script({ text: "Ready." }) });
  await expect.poll(async () => (await ask<{ state: string }>("GET", `/api/v1/runs/${run.id}`)).state, { timeout: 120_000 }).toBe("succeeded");
  return session;
}

const SCREEN = 'aside [data-testid="terminal"]';
const shows = (page: Page, text: string) => page.waitForSelector(`${SCREEN} .xterm-rows:has-text("${text}")`);

async function type(page: Page, command: string): Promise<void> {
  await page.waitForSelector(`${SCREEN}[data-state="open"]`);
  await page.focus(`${SCREEN} textarea`);
  await page.keyboard.type(command);
  await page.keyboard.press("Enter");
}

let browser: Visit;
beforeEach(async () => {
  browser = await visit();
});
afterEach(async () => {
  const { problems } = browser;
  await browser.close();
  expect(problems).toEqual([]);
});

describe("a session's terminal", () => {
  it("says that no sandbox runs, and opens when a message has started one", async () => {
    const { page } = browser;
    const session = await newSession("No sandbox");
    await open(page, `/sessions/${session}?panel=terminal`);
    await page.waitForSelector("aside >> text=No sandbox runs now");
    await page.fill('textarea[aria-label="Message"]', script({ text: "Here I am." }));
    await page.keyboard.press("Enter");
    await type(page, "echo it-is-$((20 + 3))");
    await shows(page, "it-is-23");
  });

  it("runs commands, is resized, and is as it was after a reload", async () => {
    const { page } = browser;
    const session = await startedSession("Terminal");
    await open(page, `/sessions/${session}?panel=terminal`);
    await type(page, `kept=${ours}; printf '\\e[38;2;20;200;20mgreen\\e[0m %s\\n' here; echo "size:$(stty size)"; echo first-$((40 + 2)) > made-${ours}.txt; cat made-${ours}.txt`);
    await shows(page, "first-42");
    const colours = await page.evaluate(() => [...document.querySelectorAll<HTMLElement>(".xterm-rows span")].filter((one) => one.textContent === "green").map((one) => one.style.color));
    expect(colours.at(-1)).toMatch(/^(rgb|#)/); // made without a style attribute, which the policy forbids; what was typed has none
    const before = /size:(\d+) (\d+)/.exec(await page.innerText(`${SCREEN} .xterm-rows`));
    expect(await violations(page)).toEqual([]);

    await page.reload();
    await shows(page, "first-42");
    await type(page, "echo again-$kept");
    await shows(page, `again-${ours}`);

    await page.setViewportSize({ width: 1440, height: 600 });
    await expect.poll(async () => {
      await type(page, 'clear; echo "size:$(stty size)"');
      await page.waitForTimeout(500);
      return /size:(\d+) (\d+)/.exec(await page.innerText(`${SCREEN} .xterm-rows`))?.[1];
    }, { timeout: 60_000 }).not.toBe(before?.[1]);

    await page.keyboard.press("F6"); // the way out without a mouse
    expect(await page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("tab");
    await type(page, "exit");
    await page.waitForSelector("aside >> text=The shell has ended");
    await page.click('aside button:has-text("Open a new one")');
    await type(page, "echo new-$((1 + 1))-${kept:-none}");
    await shows(page, "new-2-none");
  });

  it("is not there for a reader, and ends when a driver is one no more", async () => {
    const session = await startedSession("Shared");
    const reader = await guest(`reader-${ours}`, "member");
    const driver = await guest(`driver-${ours}`, "project_admin");
    await ask("PUT", `/api/v1/sessions/${session}/shares/reader-${ours}`, { level: "read" });
    await ask("PUT", `/api/v1/sessions/${session}/shares/driver-${ours}`, { level: "drive" });
    await open(reader.page, `/sessions/${session}`);
    await reader.page.waitForSelector('aside [role="tab"]:has-text("Changes")');
    expect(await reader.page.locator('aside [role="tab"]:has-text("Terminal")').count()).toBe(0);
    await open(reader.page, `/sessions/${session}?panel=terminal`);
    await reader.page.waitForSelector("aside >> text=No terminal for you here");
    await open(driver.page, `/sessions/${session}?panel=terminal`);
    await type(driver.page, "echo drive-$((3 + 4))");
    await shows(driver.page, "drive-7");
    // Not the owner's shell.
    await open(browser.page, `/sessions/${session}?panel=terminal`);
    await type(browser.page, "echo mine-$((5 + 5))");
    await shows(browser.page, "mine-10");
    expect(await browser.page.innerText(`${SCREEN} .xterm-rows`)).not.toContain("drive-7");
    await ask("PUT", `/api/v1/sessions/${session}/shares/driver-${ours}`, { level: "read" });
    await driver.page.waitForSelector("aside >> text=No terminal for you here");
    expect([...reader.problems, ...driver.problems]).toEqual([]);
    for (const one of [reader, driver]) await one.close();
  });
});
