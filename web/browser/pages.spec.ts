import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, open, type Visit, violations, visit } from "./browser";
import { pages } from "./pages";

const reviews = await ask<{ reviews: { id: string; path: string }[] }>("GET", "/api/v1/reviews?project=notes&state=open");
const all = pages(`notes/${reviews.reviews.find((one) => one.path === "shop.json")?.id}`);

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
