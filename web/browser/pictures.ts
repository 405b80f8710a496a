// Takes a picture of every page, dark and light, wide and narrow: `npx vitest run --config vitest.browser.config.ts browser/pictures.run.ts`.
import { mkdirSync } from "node:fs";
import { hostname } from "node:os";
import type { Page } from "playwright-core";
import { open, visit } from "./browser";
import { allPages } from "./pages";

/** What is done on a page before its picture. */
const PREPARED: Record<string, (page: Page) => Promise<unknown>> = {
  example: async (page) => {
    await page.click('button:has-text("Start the example")');
    await page.waitForSelector('[data-testid="example-result"]');
  },
  "session-terminal": async (page) => {
    await page.waitForSelector('[data-testid="terminal"][data-state="open"]');
    await page.focus('[data-testid="terminal"] textarea');
    await page.keyboard.type("clear; PS1='\\[\\e[32m\\]\\w\\[\\e[0m\\] $ '; ls --color=always; head -3 plan.md\n");
    await page.waitForTimeout(800);
  },
};

/** Pictures show no machine's name and no folder of the one they were taken on. */
function namesOfNoMachine(machine: string): void {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    node.textContent = (node.textContent ?? "").replaceAll(machine, "workstation").replace(/\/(dev\/shm|tmp)\/[^/\s]+\/data/g, "/var/lib/contextbase");
  }
}

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
        const details = page.locator('button[aria-label="Details"]');
        if (shown.name.startsWith("session-") && (await details.isVisible())) await details.click(); // there is no room beside
        await PREPARED[shown.name]?.(page);
        await page.waitForSelector('[role="status"][aria-label="Loading"]', { state: "detached", timeout: 10_000 }).catch(() => null);
        await page.waitForTimeout(250);
        await page.evaluate(namesOfNoMachine, hostname());
        await page.screenshot({ path: `${folder}/${shown.name}-${theme}-${width === 360 ? "narrow" : "wide"}.png` });
      }
      await close();
    }
  }
}
