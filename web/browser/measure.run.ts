// Measures the workbench in a real browser; bench/web.py runs it and reads the line it prints.
import type { Page } from "playwright-core";
import { it } from "vitest";
import { ask, open, url, visit } from "./browser";

const ROWS = Number(process.env.WORKBENCH_ROWS ?? 100_000);
const MESSAGES = Number(process.env.WORKBENCH_MESSAGES ?? 2000);
const WORDS = 400;
const tenth = (value: number) => Math.round(value * 10) / 10;

it("measures", async () => {
  const figures: Record<string, number> = {};
  await measureStart(figures);
  await measureTree(figures);
  await measureThread(figures);
  await measureTyping(figures);
  figures.longest_frame_ms = Math.max(figures.tree_longest_frame_ms ?? 0, figures.thread_longest_frame_ms ?? 0);
  console.log(`FIGURES ${JSON.stringify(figures)}`);
}, 900_000);

async function measureStart(figures: Record<string, number>): Promise<void> {
  const { page, close } = await visit();
  await page.goto(`${url}/projects`);
  await page.waitForSelector('a[href="/projects/large"]');
  figures.time_to_interactive_ms = await page.evaluate(() => Math.round(performance.now()));
  figures.initial_kb_gz = await page.evaluate(() => {
    const loaded = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    const bytes = loaded.filter((one) => /\/assets\/.*\.(js|css)$/.test(one.name)).reduce((sum, one) => sum + one.encodedBodySize, 0);
    return Math.round(bytes / 100) / 10;
  });
  await close();
}

async function measureTree(figures: Record<string, number>): Promise<void> {
  const { page, close } = await visit();
  await open(page, "/projects/large/files/");
  const started = Date.now();
  await page.click('[role="treeitem"]:has-text("all")');
  await page.waitForFunction((rows) => (document.querySelector('[role="tree"] > div')?.clientHeight ?? 0) >= rows * 28, ROWS, { timeout: 600_000 });
  figures.tree_loaded_ms = Date.now() - started;
  await page.waitForTimeout(1000); // what loading left behind is not scrolling
  const frames = await scrolled(page, '[role="tree"]');
  figures.tree_longest_frame_ms = frames.longest;
  figures.median_frame_ms = frames.median;
  figures.rows_in_document = await page.locator('[role="treeitem"]').count();
  await close();
}

/** A long conversation: the messages are made up here, because two thousand runs would take an hour. The browser has no
 * cache while a request of the page is answered here, so a reload loads all code again. */
async function measureThread(figures: Record<string, number>): Promise<void> {
  const { id } = await ask<{ id: string }>("POST", "/api/v1/sessions", { project: "large", provider: "scripted", title: "Long" });
  const { page, close } = await visit();
  await page.route(/\/api\/v1\/chat\/[^/]+\/messages/, async (route) => {
    const before = Number(new URL(route.request().url()).searchParams.get("before") ?? MESSAGES);
    const start = Math.max(0, before - 50);
    const messages = Array.from({ length: before - start }, (_, index) => messageNumber(start + index));
    await route.fulfill({ json: { id, messages, next_before: start === 0 ? null : start } });
  });
  await open(page, `/sessions/${id}`);
  await page.waitForSelector(`text=Answer ${MESSAGES - 1}`);
  const reloads: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    await page.waitForTimeout(500); // what the page before still asked for
    await page.reload();
    await page.waitForSelector(`text=Answer ${MESSAGES - 1}`);
    reloads.push(await page.evaluate(() => Math.round(performance.now())));
  }
  figures.reload_to_thread_ms = reloads.sort((a, b) => a - b)[2] ?? 0;
  await page.evaluate(async () => {
    const thread = document.querySelector('[data-testid="thread"]') as HTMLElement;
    while (thread.querySelector('[data-testid="older"]')) {
      thread.scrollTop = 0;
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    thread.scrollTop = 0;
  });
  await page.waitForSelector("text=Question 0");
  await page.waitForTimeout(1000);
  const frames = await scrolled(page, '[data-testid="thread"]');
  figures.thread_longest_frame_ms = frames.longest;
  figures.thread_median_frame_ms = frames.median;
  figures.messages_in_document = await page.locator("article").count();
  await close();
}

function messageNumber(number: number): object {
  const id = `message-${number}`;
  if (number % 2 === 0) return { id, role: "user", metadata: { run_id: id }, parts: [{ type: "text", text: `Question ${number}: what about it?` }] };
  const edit = { type: "dynamic-tool", toolName: "edit", toolCallId: `tool-${number}`, state: "output-available", input: { file_path: `/workspace/file-${number}.md`, old_string: "one\ntwo\nthree", new_string: "one\n2\nthree" }, output: "" };
  const text = `Answer ${number}\n\n${"It is **so**, because `this` follows from that. ".repeat(1 + (number % 7))}\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |`;
  return { id, role: "assistant", metadata: { run_id: id, usage: { input_tokens: 100, output_tokens: 20 }, duration_ms: 900 }, parts: [{ type: "text", text }, ...(number % 5 === 0 ? [edit] : [])] };
}

/** Typing while an answer comes in at 50 words a second: from the key to the next picture. */
async function measureTyping(figures: Record<string, number>): Promise<void> {
  const { id } = await ask<{ id: string }>("POST", "/api/v1/sessions", { project: "large", provider: "scripted", title: "Typing" });
  const steps = Array.from({ length: WORDS }, (_, index) => [{ text: `word${index} ` }, { pause: 0.02 }]).flat();
  const { page, close } = await visit();
  await open(page, `/sessions/${id}`);
  await page.fill("textarea", `Talk.\n\`\`\`script\n${JSON.stringify(steps)}\n\`\`\``);
  await page.keyboard.press("Enter");
  await page.waitForSelector('article[aria-label="Agent"]:has-text("word5")');
  await page.evaluate(() => {
    const delays: number[] = [];
    Object.assign(window, { delays });
    document.querySelector("textarea")?.addEventListener("input", (event) => requestAnimationFrame(() => delays.push(performance.now() - event.timeStamp)));
  });
  await page.focus("textarea");
  await page.keyboard.type("what I want to say next, while it still speaks", { delay: 60 });
  const delays = await page.evaluate(() => (window as unknown as { delays: number[] }).delays.sort((a, b) => a - b));
  figures.input_delay_ms = tenth(delays[Math.floor(delays.length * 0.95)] ?? 0);
  await close();
}

/** From top to bottom, now and then with a leap, as with the scroll bar. */
async function scrolled(page: Page, selector: string): Promise<{ longest: number; median: number }> {
  const gaps = await page.evaluate(
    async (where) => {
      const box = document.querySelector(where) as HTMLElement;
      const found: number[] = [];
      let before = 0;
      box.scrollTop = 0;
      const pixels = ((box.scrollHeight - box.clientHeight) / 600);
      await new Promise<void>((resolve) => {
        let count = 0;
        const frame = (now: number) => {
          if (before) found.push(now - before);
          before = now;
          box.scrollTop += count % 100 === 99 ? pixels * 30 : pixels;
          if (++count < 600) requestAnimationFrame(frame);
          else resolve();
        };
        requestAnimationFrame(frame);
      });
      return found.sort((a, b) => a - b);
    },
    selector,
  );
  return { longest: tenth(gaps.at(-1) ?? 0), median: tenth(gaps[Math.floor(gaps.length / 2)] ?? 0) };
}
