import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, type Visit, violations, visit } from "./browser";
import { allPages } from "./pages";

const all = await allPages("shop.json");

describe.each([
  { theme: "light", width: 1440 },
  { theme: "dark", width: 360 },
] as const)("in $theme, $width pixels wide", ({ theme, width }) => {
  let browser: Visit;
  beforeAll(async () => {
    browser = await visit({ theme, width });
  });
  afterAll(() => browser.close());

  it.each(all)("$name shows what it is for, and axe finds nothing wrong", async ({ path, ready }) => {
    const { page, problems } = browser;
    await open(page, path);
    await page.waitForSelector(ready, { state: "attached" });
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    expect(problems).toEqual([]);
  });
});
