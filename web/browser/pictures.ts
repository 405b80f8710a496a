// Takes a picture of every page, dark and light, wide and narrow: `npx vitest run --config vitest.browser.config.ts browser/pictures.run.ts`.
import { mkdirSync } from "node:fs";
import type { Page } from "playwright-core";
import { open, visit } from "./browser";
import { allPages } from "./pages";

/** What is done on a page before its picture. */
const PREPARED: Record<string, (page: Page) => Promise<unknown>> = {
  example: async (page) => {
    await page.click('button:has-text("Start the example")');
    await page.waitForSelector('[data-testid="example-result"]');
  },
};

export async function takePictures(folder: string, only?: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const all = await allPages("plan.md");
  for (const theme of ["light", "dark"] as const) {
    for (const width of [1440, 360]) {
      const { page, close } = await visit({ theme, width, height: width === 360 ? 740 : 900 });
      for (const shown of all) {
        if (only && !only.split(",").includes(shown.name)) continue;
        await open(page, shown.path);
        await page.waitForSelector(shown.ready, { state: "attached" }).catch(() => console.log(`not ready: ${shown.name} ${width}`));
        await PREPARED[shown.name]?.(page);
        await page.waitForTimeout(250);
        await page.screenshot({ path: `${folder}/${shown.name}-${theme}-${width === 360 ? "narrow" : "wide"}.png` });
      }
      await close();
    }
  }
}
