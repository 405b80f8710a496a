// Measures the workbench in a real browser; bench/web.py runs it and reads the line it prints.
import { it } from "vitest";
import { open, url, visit } from "./browser";

const ROWS = Number(process.env.WORKBENCH_ROWS ?? 100_000);

it("measures", async () => {
  const figures: Record<string, number> = {};

  const first = await visit();
  await first.page.goto(`${url}/projects`);
  await first.page.waitForSelector('a[href="/projects/large"]');
  figures.time_to_interactive_ms = await first.page.evaluate(() => Math.round(performance.now()));
  figures.initial_kb_gz = await first.page.evaluate(() => {
    const loaded = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    const bytes = loaded.filter((one) => /\/assets\/.*\.(js|css)$/.test(one.name)).reduce((sum, one) => sum + one.encodedBodySize, 0);
    return Math.round(bytes / 100) / 10;
  });
  await first.close();

  const second = await visit();
  const { page } = second;
  await open(page, "/projects/large/files/");
  const started = Date.now();
  await page.click('[role="treeitem"]:has-text("all")');
  await page.waitForFunction((rows) => (document.querySelector('[role="tree"] > div')?.clientHeight ?? 0) >= rows * 28, ROWS, { timeout: 600_000 });
  figures.tree_loaded_ms = Date.now() - started;
  await page.waitForTimeout(1000); // what loading left behind is not scrolling
  const frames = await page.evaluate(async () => {
    const tree = document.querySelector('[role="tree"]') as HTMLElement;
    const gaps: number[] = [];
    let before = 0;
    let blank = 0;
    const step = (tree.scrollHeight - tree.clientHeight) / 600;
    await new Promise<void>((resolve) => {
      let count = 0;
      const frame = (now: number) => {
        if (before) gaps.push(now - before);
        before = now;
        tree.scrollTop += count % 100 === 99 ? step * 30 : step; // now and then a leap, as with the scroll bar
        if (tree.querySelectorAll('[role="treeitem"]').length === 0) blank++;
        if (++count < 600) requestAnimationFrame(frame);
        else resolve();
      };
      requestAnimationFrame(frame);
    });
    gaps.sort((a, b) => a - b);
    return { longest: Math.max(...gaps), median: gaps[Math.floor(gaps.length / 2)] ?? 0, blank };
  });
  figures.longest_frame_ms = Math.round(frames.longest * 10) / 10;
  figures.median_frame_ms = Math.round(frames.median * 10) / 10;
  figures.rows_in_document = await page.locator('[role="treeitem"]').count();
  await second.close();
  console.log(`FIGURES ${JSON.stringify(figures)}`);
}, 900_000);
